//! Finding, editing and watching the files of a session.

use std::sync::Arc;

use atoll_engine::Changes;
use atoll_types::{
    file::Listing,
    id::SessionId,
    search::{EditFile, Edited, Glob, Grep, Matches},
};
use futures_util::StreamExt as _;

use crate::{Result, Service};

impl Service {
    /// What happens in a directory from now on. The session is in use while the stream is held.
    pub async fn watch_files(
        &self,
        id: &SessionId,
        path: &str,
        recursive: bool,
    ) -> Result<Changes> {
        let live = self.live(id).await?;
        let held = Arc::new(live.hold());
        let changes = live.sandbox.files().watch(path, recursive).await?;
        Ok(changes
            .map(move |change| {
                let _in_use = &held;
                change
            })
            .boxed())
    }

    /// Finds files by name.
    pub async fn glob_files(&self, id: &SessionId, glob: &Glob) -> Result<Listing> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().glob(glob).await?)
    }

    /// Finds lines in files.
    pub async fn grep_files(&self, id: &SessionId, grep: &Grep) -> Result<Matches> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().grep(grep).await?)
    }

    /// Replaces text in a file: all of it, or nothing.
    pub async fn edit_file(&self, id: &SessionId, edit: &EditFile) -> Result<Edited> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().edit(&edit.path, &edit.edits).await?)
    }
}
