//! Why a stream or a whole connection cannot go on.

use std::{io, sync::Arc};

/// What went wrong with a stream.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The connection ended, in order or by our own hand.
    #[error("the connection is closed")]
    Closed,
    #[error("the connection broke")]
    Io(#[source] Arc<io::Error>),
    /// The peer broke the rules; the connection is closed.
    #[error("the peer broke the protocol: {0}")]
    Protocol(#[from] Violation),
    /// The peer gave this stream up.
    #[error("the stream was reset")]
    Reset,
    /// The stream carried bytes that are not the message asked for.
    #[error("a message could not be read")]
    Malformed(#[source] prost::DecodeError),
    /// The message to send is longer than any may be.
    #[error("the message is too long")]
    TooLong,
    /// An earlier message was left half sent, or the stream was finished.
    #[error("the stream takes no more messages")]
    Finished,
}

/// A rule the peer broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("a frame of unknown kind")]
    Kind,
    #[error("a frame of impossible length")]
    Length,
    #[error("a frame with unknown flags")]
    Flags,
    #[error("a stream that is not there")]
    Stream,
    #[error("more data than was allowed")]
    Window,
    #[error("more credit than was used")]
    Credit,
    #[error("a frame after the stream's end")]
    AfterEnd,
    #[error("a message cut short")]
    CutShort,
    #[error("a message that is too long")]
    MessageLength,
    #[error("too many useless frames")]
    Flood,
}
