//! A directory of a session, to this machine.

use std::{fs::File, path::Path};

use atoll_archive::{Failed, Unpacker};
use atoll_client::{Client, Download};
use atoll_types::id::SessionId;
use futures_util::StreamExt as _;

use super::{
    rules::{Target, home, on_host, taken},
    stopped::Stopped,
    summary,
    umask::umask,
    unfinished::Unfinished,
};
use crate::{
    failure::{Doing as _, Failure, Result},
    invocation::Invocation,
    progress::Progress,
};

/// Copies a directory here, and returns the exit code.
///
/// A directory that is new is there when it is whole. One that was there is added to; what was
/// whole stays when this fails or is dropped.
pub(crate) async fn download(
    client: &Client,
    session: &SessionId,
    path: &str,
    to: &Path,
    invocation: &Invocation,
) -> Result<u8> {
    let target = on_host(to, &taken(path.as_bytes()))?;
    let archive = client.pack_files(session, home(path)).await?;
    let printer = invocation.printer;
    let progress = Progress::new(printer, home(path), None);
    let copied = match target {
        Target::New(target) => {
            let unfinished = Unfinished::beside(&target)?;
            let mut unpacker = into(unfinished.open()?, true)?;
            let copied = unpack(archive, &mut unpacker, &progress).await?;
            drop(unpacker);
            unfinished.finish()?;
            copied
        }
        Target::Existing(target) => {
            let directory =
                File::open(&target).doing(|| format!("cannot write {}", target.display()))?;
            let mut unpacker = into(directory, false)?;
            let stays = format!("what came before is in {}", target.display());
            let stopped = Stopped::new(printer, stays);
            let copied = unpack(archive, &mut unpacker, &progress).await?;
            stopped.whole();
            copied
        }
    };
    drop(progress);
    summary(printer, &copied)
}

fn into(directory: File, fresh: bool) -> Result<Unpacker> {
    Unpacker::new(directory.into(), fresh, umask()).map_err(|failed| cannot(&failed))
}

/// Unpacks as it comes: the disk is nobody's to wait for but ours.
async fn unpack(
    mut archive: Download,
    unpacker: &mut Unpacker,
    progress: &Progress,
) -> Result<atoll_archive::Contents> {
    while let Some(piece) = archive.next().await {
        let piece = piece?;
        unpacker.write(&piece).map_err(|failed| cannot(&failed))?;
        progress.add(piece.len());
    }
    unpacker.finish().map_err(|failed| cannot(&failed))
}

fn cannot(failed: &Failed) -> Failure {
    Failure::new(format!("cannot unpack what the session sent: {failed}"))
}
