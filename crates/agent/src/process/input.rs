//! A process's standard input.

use bytes::Bytes;
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::pipe,
    sync::{mpsc, oneshot},
};

/// Bytes to write, and where to tell when the process has taken them.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) data: Bytes,
    pub(crate) taken: oneshot::Sender<()>,
}

/// Writes what comes, in order, until the process takes no more or nobody will send more.
///
/// Dropped when the process ends: whoever waits then learns that it was not taken.
pub(crate) async fn feed(mut pipe: pipe::Sender, mut inputs: mpsc::Receiver<Input>) {
    while let Some(Input { data, taken }) = inputs.recv().await {
        if pipe.write_all(&data).await.is_err() {
            return;
        }
        let _ = taken.send(());
    }
}
