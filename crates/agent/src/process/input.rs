//! A process's standard input.

use std::io;

use bytes::{Buf as _, Bytes};
use tokio::{
    io::Interest,
    sync::{mpsc, oneshot},
};

use crate::launch::Source;

/// Bytes to write, and where to tell when the process has taken them.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) data: Bytes,
    pub(crate) taken: oneshot::Sender<()>,
}

/// Writes what comes, in order, until the process takes no more or nobody will send more.
///
/// Dropped when the process ends: whoever waits then learns that it was not taken.
pub(crate) async fn feed(end: Source, mut inputs: mpsc::Receiver<Input>) {
    while let Some(Input { data, taken }) = inputs.recv().await {
        if write_all(&end, data).await.is_err() {
            return;
        }
        let _ = taken.send(());
    }
}

async fn write_all(end: &Source, mut data: Bytes) -> io::Result<()> {
    while !data.is_empty() {
        let attempt = |end: &_| Ok(rustix::io::write(end, &data)?);
        match end.async_io(Interest::WRITABLE, attempt).await {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => data.advance(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
