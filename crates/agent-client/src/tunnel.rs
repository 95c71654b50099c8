//! One stream of a link as a byte stream to a port.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use atoll_agent_protocol::{
    message::{Upload, response::Answer, upload::Part},
    mux::Stream,
};
use atoll_engine::{Error, Result};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, mpsc},
    task::JoinHandle,
};
use tokio_util::{io::StreamReader, sync::PollSender};

use crate::{failure, line, sandbox::Inner};

/// Bytes in one message.
const CHUNK: usize = 64 << 10;
/// Messages that wait to be sent.
const WAITING: usize = 2;

/// Reads straight from the link; writes through a task, so that what was written goes on its way
/// whether or not anyone waits for that.
pub(crate) struct Duct {
    inner: Arc<Inner>,
    incoming: StreamReader<BoxStream<'static, io::Result<Bytes>>, Bytes>,
    outgoing: PollSender<Bytes>,
    /// Sends what was written; none when that has ended.
    sender: Option<JoinHandle<Result<()>>>,
    _place: OwnedSemaphorePermit,
}

impl Duct {
    pub(crate) fn new(inner: Arc<Inner>, stream: Stream, place: OwnedSemaphorePermit) -> Self {
        let stream = Arc::new(stream);
        let (outgoing, written) = mpsc::channel(WAITING);
        let sender = tokio::spawn(send(Arc::clone(&inner), Arc::clone(&stream), written));
        Self {
            incoming: StreamReader::new(received(Arc::clone(&inner), stream)),
            inner,
            outgoing: PollSender::new(outgoing),
            sender: Some(sender),
            _place: place,
        }
    }

    /// Why nothing more can be written.
    fn closed(&self) -> io::Error {
        if self.inner.ended.is_cancelled() {
            return broken(failure::lost());
        }
        let gone = Error::not_found("the connection to the port is closed");
        io::Error::new(io::ErrorKind::BrokenPipe, gone)
    }
}

impl Drop for Duct {
    fn drop(&mut self) {
        // With it goes the last hold on the stream, and with that the connection.
        if let Some(sender) = &self.sender {
            sender.abort();
        }
    }
}

impl AsyncRead for Duct {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.incoming).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Duct {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        // Nobody may have noticed yet.
        if self.inner.ended.is_cancelled() || ready!(self.outgoing.poll_reserve(cx)).is_err() {
            return Poll::Ready(Err(self.closed()));
        }
        let part = &buffer[..buffer.len().min(CHUNK)];
        let sent = self.outgoing.send_item(Bytes::copy_from_slice(part));
        Poll::Ready(sent.map(|()| part.len()).map_err(|_| self.closed()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Returns when all that was written is on its way.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outgoing.close();
        let Some(sender) = &mut self.sender else { return Poll::Ready(Ok(())) };
        let sent = ready!(Pin::new(sender).poll(cx));
        self.sender = None;
        Poll::Ready(match sent {
            Ok(sent) => sent.map_err(broken),
            Err(_) => Err(self.closed()),
        })
    }
}

/// What the program sends, as it comes.
fn received(inner: Arc<Inner>, stream: Arc<Stream>) -> BoxStream<'static, io::Result<Bytes>> {
    stream::unfold(Some((inner, stream)), |state| async move {
        let (inner, stream) = state?;
        match inner.living(line::next(&stream)).await {
            Ok(None) => None,
            Ok(Some(Answer::Chunk(data))) => Some((Ok(data), Some((inner, stream)))),
            Ok(Some(_)) => Some((Err(broken(failure::nonsense())), None)),
            Err(error) => Some((Err(broken(error)), None)),
        }
    })
    .fuse()
    .boxed()
}

/// Sends what is written, then that there is no more.
async fn send(
    inner: Arc<Inner>,
    stream: Arc<Stream>,
    mut written: mpsc::Receiver<Bytes>,
) -> Result<()> {
    let sending = async {
        while let Some(data) = written.recv().await {
            let upload = Upload { part: Some(Part::Chunk(data)) };
            stream.send(&upload).await.map_err(failure::of_stream)?;
        }
        stream.finish();
        Ok(())
    };
    inner.living(sending).await
}

fn broken(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}
