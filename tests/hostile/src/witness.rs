//! A neighbour that lives through every check and must not notice (I3).

use anyhow::{Context as _, Result};
use atoll_engine::Files;
use futures_util::{StreamExt as _, TryStreamExt as _};

use crate::{
    check::claim,
    ground::{Ground, probe},
    run::eventually,
};

/// A sandbox with a heartbeat and a keepsake.
#[derive(Debug)]
pub struct Witness {
    pub ground: Ground,
    keepsake: String,
}

impl Witness {
    pub async fn new(ground: Ground) -> Result<Self> {
        let keepsake = crate::canary::token()?;
        let content = bytes::Bytes::from(keepsake.clone());
        let stream = futures_util::stream::iter([Ok(content)]).boxed();
        ground.sandbox.files().write("keepsake", stream).await?;
        ground.sandbox.start(probe(&["heartbeat", "beat"])).await?;
        let witness = Self { ground, keepsake };
        witness.unharmed().await?;
        Ok(witness)
    }

    /// Fails unless its file is as it was and its heart goes on.
    pub async fn unharmed(&self) -> Result<()> {
        let files = self.ground.sandbox.files();
        let kept = content(files, "keepsake").await.context("the witness's file")?;
        claim(kept == self.keepsake.as_bytes(), || "I3: the witness's file changed".to_owned())?;
        let before = self.beat().await;
        let goes_on = eventually(|| async { Ok(self.beat().await > before) }).await?;
        claim(goes_on, || "I3: the witness's heart stands still".to_owned())
    }

    async fn beat(&self) -> Option<u64> {
        let text = content(self.ground.sandbox.files(), "beat").await.ok()?;
        String::from_utf8(text).ok()?.parse().ok()
    }
}

/// A whole file.
pub async fn content(files: &dyn Files, path: &str) -> atoll_engine::Result<Vec<u8>> {
    let stream = files.read(path).await?;
    stream
        .try_fold(Vec::new(), |mut all, chunk| async move {
            all.extend_from_slice(&chunk);
            Ok(all)
        })
        .await
}
