//! A directory of this machine, into a session.

use std::{
    fs::{self, File},
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use atoll_archive::{Contents, Failed, Packer};
use atoll_client::Client;
use atoll_types::id::SessionId;
use bytes::Bytes;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    rules::{in_session, taken},
    stopped::Stopped,
    summary,
};
use crate::{
    failure::{Doing as _, Failure, Result},
    invocation::Invocation,
    progress::Progress,
};

/// What is packed at once, and how many such pieces may wait.
const PIECE: usize = 128 << 10;
const PIECES: usize = 4;

/// Copies a directory into a session, and returns the exit code.
pub(crate) async fn upload(
    client: &Client,
    from: &Path,
    session: &SessionId,
    path: &str,
    invocation: &Invocation,
) -> Result<u8> {
    let printer = invocation.printer;
    let shown = from.display().to_string();
    let path = in_session(client, session, path, &taken(from.as_os_str().as_bytes())).await?;
    let directory = File::open(from).doing(|| format!("cannot read {shown}"))?;
    let size = printer.progress().then(|| size(from.to_owned()));
    let progress = Progress::new(printer, &shown, size);
    let (archive, packing) = pack(directory, progress).map_err(|failed| cannot(&shown, &failed))?;

    let stopped = Stopped::new(printer, format!("what came before is in {session}:{path}"));
    let sent = client.unpack_files(session, &path, archive).await;
    let packed = packing.await.doing(|| format!("cannot read {shown}"))?;
    // Why it could not be read says more than that the request broke off.
    let copied = packed.map_err(|failed| cannot(&shown, &failed))?;
    sent?;
    stopped.whole();
    summary(printer, &copied)
}

fn cannot(shown: &str, failed: &Failed) -> Failure {
    Failure::new(format!("cannot read {shown}: {failed}"))
}

type Pieces = BoxStream<'static, io::Result<Bytes>>;
type Packing = JoinHandle<Result<Contents, Failed>>;

/// Packs a directory on another thread, which ends soon after nobody wants what it packs.
fn pack(directory: File, progress: Progress) -> Result<(Pieces, Packing), Failed> {
    let mut packer = Packer::directory(directory.into())?;
    let (pieces, received) = mpsc::channel(PIECES);
    let packing = tokio::task::spawn_blocking(move || {
        let mut more = true;
        while more {
            let mut piece = Vec::with_capacity(PIECE);
            let (sent, failed) = match packer.read(&mut piece, PIECE) {
                Ok(goes_on) => {
                    more = goes_on;
                    (pieces.blocking_send(Ok(Bytes::from(piece))), None)
                }
                Err(failed) => {
                    let broken = io::Error::other(failed.to_string());
                    (pieces.blocking_send(Err(broken)), Some(failed))
                }
            };
            if let Some(failed) = failed {
                return Err(failed);
            }
            if sent.is_err() {
                break;
            }
        }
        Ok(packer.contents().clone())
    });
    let pieces = stream::unfold(received, |mut received| async {
        received.recv().await.map(|piece| (piece, received))
    });
    let counted = pieces.inspect(move |piece| progress.add(piece.as_ref().map_or(0, Bytes::len)));
    Ok((counted.boxed(), packing))
}

/// How long the archive of a directory will be, about: for people only.
fn size(root: PathBuf) -> u64 {
    let (mut size, mut ahead) = (1024, vec![root]);
    while let Some(directory) = ahead.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            size += 512;
            if about.is_dir() {
                ahead.push(entry.path());
            } else if about.is_file() {
                size += about.len().next_multiple_of(512);
            }
        }
    }
    size
}
