//! What can go wrong with an agent, in the engine's words.

use std::{error::Error as _, io};

use atoll_agent_protocol::{
    message::{Failure, FailureKind},
    mux,
};
use atoll_engine::{Error, ErrorKind};

use crate::text::plain;

/// The agent said that it could not do it.
pub(crate) fn of_agent(failure: &Failure) -> Error {
    let kind = match failure.kind() {
        FailureKind::Internal => ErrorKind::Internal,
        FailureKind::Invalid => ErrorKind::Invalid,
        FailureKind::NotFound => ErrorKind::NotFound,
        FailureKind::AlreadyExists => ErrorKind::AlreadyExists,
        FailureKind::Denied => ErrorKind::Denied,
        FailureKind::Exhausted => ErrorKind::Exhausted,
        FailureKind::Unsupported => ErrorKind::Unsupported,
    };
    Error::new(kind, plain(&failure.message))
}

/// The call broke off.
pub(crate) fn of_stream(error: mux::Error) -> Error {
    let message = match error {
        mux::Error::TooLong => return Error::invalid("the request is too long"),
        mux::Error::Protocol(_) | mux::Error::Malformed(_) => "the sandbox's agent talked nonsense",
        mux::Error::Reset | mux::Error::Finished => "the sandbox's agent broke off the call",
        mux::Error::Closed | mux::Error::Io(_) => "the connection to the sandbox broke",
    };
    Error::internal(message).because(error)
}

/// The agent answered, but not what was asked.
pub(crate) fn nonsense() -> Error {
    Error::internal("the sandbox's agent talked nonsense")
}

/// The agent did not answer.
pub(crate) fn silence() -> Error {
    Error::new(ErrorKind::TimedOut, "the sandbox's agent does not answer")
}

/// The sandbox has ended.
pub(crate) fn lost() -> Error {
    Error::lost("the sandbox is gone")
}

/// Whether the link, rather than the request, is to blame: another one might do.
pub(crate) fn is_of_link(error: &Error) -> bool {
    let source = error.source();
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::TimedOut => true,
        ErrorKind::Internal => {
            source.is_some_and(|source| source.is::<mux::Error>() || source.is::<io::Error>())
        }
        _ => false,
    }
}
