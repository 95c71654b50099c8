//! A stream whose reader may be slow, but not for ever.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// How long a client may leave its answer unread.
const PATIENCE: Duration = Duration::from_mins(2);

/// Fails a write that makes no progress for [`PATIENCE`], so that a client that asks and never
/// reads does not keep what its answer holds.
#[derive(Debug)]
pub(super) struct Patient<S, H> {
    stream: S,
    _held: H,
    patience: Duration,
    unhurried: Unhurried,
    /// Running while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

/// Set once nobody minds how slowly the client reads: the connection carries no answers any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unhurried(Arc<AtomicBool>);

impl Unhurried {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S, H> Patient<S, H> {
    /// `held` is dropped with the stream.
    pub(super) fn new(stream: S, held: H, unhurried: Unhurried) -> Self {
        Self { stream, _held: held, patience: PATIENCE, unhurried, waiting: None }
    }

    /// Passes a result on, and judges how long there has been none.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() || self.unhurried.is_set() {
            self.waiting = None;
            return polled;
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin, H: Unpin> AsyncRead for Patient<S, H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin, H: Unpin> AsyncWrite for Patient<S, H> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, data);
        self.judge(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_never_reads_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut patient = Patient::new(ours, (), Unhurried::default());

        let error = patient.write_all(&[0; 64]).await.unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut patient = Patient::new(ours, (), Unhurried::default());
        let reader = tokio::spawn(async move {
            let mut taken = [0; 8];
            for _ in 0..8 {
                tokio::time::sleep(PATIENCE / 2).await;
                theirs.read_exact(&mut taken).await.unwrap();
            }
        });

        patient.write_all(&[0; 64]).await.unwrap();

        reader.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_carries_no_answers_may_take_for_ever() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let unhurried = Unhurried::default();
        unhurried.set();
        let mut patient = Patient::new(ours, (), unhurried);
        let reader = tokio::spawn(async move {
            tokio::time::sleep(PATIENCE * 10).await;
            theirs.read_exact(&mut [0; 64]).await.unwrap();
        });

        patient.write_all(&[0; 64]).await.unwrap();

        reader.await.unwrap();
    }
}
