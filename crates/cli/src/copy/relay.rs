//! Archives that pass through: from one session to another, from standard input, to standard
//! output.

use std::{
    io::{self, IsTerminal as _},
    sync::{Arc, Mutex, PoisonError},
};

use atoll_archive::{Contents, Survey};
use atoll_client::Client;
use atoll_types::id::SessionId;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio_util::io::ReaderStream;

use super::{
    rules::{home, in_session, taken},
    stopped::Stopped,
    summary,
};
use crate::{
    failure::{Doing as _, Failure, Result},
    invocation::Invocation,
    progress::Progress,
};

/// Copies a directory of one session into another, and returns the exit code.
pub(crate) async fn relay(
    client: &Client,
    (one, from): (&SessionId, &str),
    (other, to): (&SessionId, &str),
    invocation: &Invocation,
) -> Result<u8> {
    let printer = invocation.printer;
    let to = in_session(client, other, to, &taken(from.as_bytes())).await?;
    let archive = client.pack_files(one, home(from)).await?;
    let archive = archive.map(|piece| piece.map_err(io::Error::other));
    let (archive, survey) = surveyed(archive, Progress::new(printer, home(from), None));

    let stopped = Stopped::new(printer, format!("what came before is in {other}:{to}"));
    client.unpack_files(other, &to, archive).await?;
    stopped.whole();
    summary(printer, &done(&survey))
}

/// Unpacks an archive from standard input into a directory of a session.
pub(crate) async fn from_stream(
    client: &Client,
    session: &SessionId,
    path: &str,
    invocation: &Invocation,
) -> Result<u8> {
    let printer = invocation.printer;
    let archive = ReaderStream::with_capacity(tokio::io::stdin(), 64 << 10);
    let (archive, survey) = surveyed(archive, Progress::new(printer, home(path), None));

    let stopped = Stopped::new(printer, format!("what came before is in {session}:{path}"));
    client.unpack_files(session, home(path), archive).await?;
    stopped.whole();
    summary(printer, &done(&survey))
}

/// Writes a directory of a session to standard output, as an archive.
pub(crate) async fn to_stream(
    client: &Client,
    session: &SessionId,
    path: &str,
    invocation: &Invocation,
) -> Result<u8> {
    if io::stdout().is_terminal() {
        return Err(Failure::usage("an archive is not for a terminal")
            .hint(format!("save it: atoll cp -r {session}:{path} - > packed.tar")));
    }
    let printer = invocation.printer;
    let archive = client.pack_files(session, home(path)).await?;
    let archive = archive.map(|piece| piece.map_err(io::Error::other));
    let (archive, survey) = surveyed(archive, Progress::new(printer, home(path), None));
    let mut archive = std::pin::pin!(archive);
    let mut stdout = tokio::io::stdout();
    while let Some(piece) = archive.next().await {
        let piece = piece.doing(|| "the archive broke off".into())?;
        stdout.write_all(&piece).await.doing(|| "cannot write".into())?;
    }
    stdout.flush().await.doing(|| "cannot write".into())?;
    // Standard output has the archive already.
    super::tell(printer, &done(&survey).left_out);
    Ok(if done(&survey).left_out.lost() > 0 { super::PARTIAL } else { 0 })
}

type Shared = Arc<Mutex<Survey>>;

/// An archive that is looked at as it passes. Whether it is sound is for its reader to say.
fn surveyed(
    archive: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    progress: Progress,
) -> (impl Stream<Item = io::Result<Bytes>> + Send + 'static, Shared) {
    let survey = Shared::default();
    let shared = Arc::clone(&survey);
    let passing = archive.inspect(move |piece| {
        if let Ok(piece) = piece {
            progress.add(piece.len());
            shared.lock().unwrap_or_else(PoisonError::into_inner).write(piece);
        }
    });
    (passing, survey)
}

fn done(survey: &Shared) -> Contents {
    survey.lock().unwrap_or_else(PoisonError::into_inner).seen().clone()
}
