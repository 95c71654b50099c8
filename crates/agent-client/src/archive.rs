//! A tree as the agent packs it: bytes of no known number, which are whole only if it says so.

use std::sync::Arc;

use atoll_agent_protocol::{
    message::{OfPath, request::Call, response::Answer},
    mux::Stream,
};
use atoll_engine::{ByteStream, Result};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use crate::{
    failure,
    line::{self, within},
    sandbox::{ANSWER, Inner},
};

/// Begins to pack what a path names.
pub(crate) async fn pack(inner: &Arc<Inner>, path: OfPath) -> Result<ByteStream> {
    let begun = within(ANSWER, async {
        let stream = inner.flows.begin(Call::Pack(path)).await?;
        stream.finish();
        match line::answer(&stream).await? {
            Answer::Entry(_) => Ok(stream),
            _ => Err(failure::nonsense()),
        }
    });
    let stream = inner.living(begun).await?;
    let inner = Arc::clone(inner);
    let content = stream::unfold(Some(stream), move |stream| {
        let inner = Arc::clone(&inner);
        async move {
            let stream = stream?;
            match inner.living(within(ANSWER, piece(&stream))).await {
                Ok(None) => None,
                Ok(Some(piece)) => Some((Ok(piece), Some(stream))),
                Err(error) => Some((Err(error), None)),
            }
        }
    });
    Ok(content.boxed())
}

/// The next bytes; none at the end the agent has told.
async fn piece(stream: &Stream) -> Result<Option<Bytes>> {
    match line::answer(stream).await? {
        Answer::Chunk(piece) if !piece.is_empty() => Ok(Some(piece)),
        Answer::Done(_) => match line::next(stream).await? {
            None => Ok(None),
            Some(_) => Err(failure::nonsense()),
        },
        _ => Err(failure::nonsense()),
    }
}
