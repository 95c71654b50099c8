//! Builds an image from a directory of the operator's.

use std::{fs::File, io, path::Path};

use atoll_archive::Packer;
use atoll_engine::{Error, Image, Progress, Report, Result};
use bollard::{body_try_stream, query_parameters::BuildImageOptions};
use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;

use crate::{daemon::Daemon, image};

/// Bytes of the directory on their way at one time.
const PIECE: usize = 256 << 10;

/// Builds it; what has not changed since the last time the daemon takes from there.
pub(crate) async fn build(
    daemon: &Daemon,
    directory: &Path,
    wanted: &Image,
    report: Report<'_>,
) -> Result<()> {
    if !directory.join("Dockerfile").is_file() {
        return Err(Error::invalid("the environment's directory has no Dockerfile"));
    }
    let root = File::open(directory).map_err(|error| {
        Error::invalid("the Dockerfile's directory is not there").because(error)
    })?;
    let options = BuildImageOptions {
        dockerfile: "Dockerfile".to_owned(),
        t: Some(image::name(wanted)?),
        rm: true,
        forcerm: true,
        ..Default::default()
    };
    let client = daemon.client().await?;
    let mut steps = client.build_image(options, None, Some(body_try_stream(packed(root))));
    while let Some(step) = steps.next().await {
        let step = step.map_err(|error| {
            Error::invalid("the environment's image could not be built")
                .hint("`docker build` of its directory shows what is wrong")
                .because(error)
        })?;
        let doing = step.stream.or(step.status).unwrap_or_default().trim().to_owned();
        if !doing.is_empty() {
            report(Progress { part: step.id, doing, ..Progress::default() });
        }
    }
    Ok(())
}

/// A directory as an archive, read as fast as it is taken.
fn packed(root: File) -> impl Stream<Item = io::Result<bytes::Bytes>> + Send + 'static {
    let (sender, receiver) = mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        let failed = |error: atoll_archive::Failed| io::Error::other(error.to_string());
        let mut packer = match Packer::directory(root.into()) {
            Ok(packer) => packer,
            Err(error) => return drop(sender.blocking_send(Err(failed(error)))),
        };
        loop {
            let mut piece = Vec::new();
            let more = packer.read(&mut piece, PIECE).map_err(failed);
            let over = !matches!(more, Ok(true));
            if sender.blocking_send(more.map(|_| piece.into())).is_err() || over {
                return;
            }
        }
    });
    stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) })
}
