//! The body of a program's answer, and with it the connection it comes over.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio_util::task::AbortOnDropHandle;

/// Ends the connection when dropped: a client that hangs up leaves nothing running.
#[derive(Debug)]
pub(super) struct AnswerBody {
    pub(super) body: Incoming,
    pub(super) _connection: AbortOnDropHandle<()>,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
