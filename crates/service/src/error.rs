//! One error for every caller: a code for programs, a sentence and advice for people.

use std::error::Error as StdError;

use atoll_engine::ErrorKind;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Message and hint name no path of the host; the source may, and is for the log.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub code: Code,
    pub message: String,
    pub hint: Option<String>,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What the caller can do about it.
///
/// Deliberately exhaustive: a new one makes every mapping that must decide about it fail to
/// compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The request makes no sense, or asks for more than the operator allows.
    InvalidRequest,
    /// There is no such thing, or no longer.
    NotFound,
    /// It does not fit the state things are in.
    Conflict,
    /// Understood, and not allowed.
    Denied,
    /// The engine separates nothing from the host, and the request or the operator did not say
    /// that the code is trusted.
    EngineNotIsolating,
    /// The engine, here, cannot do that.
    Unsupported,
    /// The engine is not there or does not work on this host.
    EngineUnavailable,
    /// The sandbox has no program for that language.
    InterpreterMissing,
    /// The sandbox has no such program.
    ProgramMissing,
    /// The environment's image is not on this host yet.
    ImageMissing,
    /// As many sessions as there may be.
    TooManySessions,
    /// A limit of the sandbox is reached: no room, too many.
    Exhausted,
    /// The session's sandbox went away.
    SessionLost,
    /// Nothing in the sandbox listens on that port.
    PortClosed,
    /// No answer in time.
    TimedOut,
    /// Our fault.
    Internal,
}

impl Code {
    /// The word clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Denied => "denied",
            Self::EngineNotIsolating => "engine_not_isolating",
            Self::Unsupported => "unsupported",
            Self::EngineUnavailable => "engine_unavailable",
            Self::InterpreterMissing => "interpreter_missing",
            Self::ProgramMissing => "program_missing",
            Self::ImageMissing => "image_missing",
            Self::TooManySessions => "too_many_sessions",
            Self::Exhausted => "exhausted",
            Self::SessionLost => "session_lost",
            Self::PortClosed => "port_closed",
            Self::TimedOut => "timed_out",
            Self::Internal => "internal",
        }
    }
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, source: None }
    }

    /// Adds the cause, for the log.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }
}

impl From<atoll_engine::Error> for Error {
    fn from(error: atoll_engine::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Invalid => Code::InvalidRequest,
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::AlreadyExists => Code::Conflict,
            ErrorKind::Denied => Code::Denied,
            ErrorKind::Unsupported => Code::Unsupported,
            ErrorKind::Exhausted => Code::Exhausted,
            ErrorKind::Unavailable => Code::EngineUnavailable,
            ErrorKind::TimedOut => Code::TimedOut,
            ErrorKind::Lost => Code::SessionLost,
            ErrorKind::Internal => Code::Internal,
        };
        let hint = error.advice().map(str::to_owned);
        Self { code, message: error.message().to_owned(), hint, source: Some(Box::new(error)) }
    }
}

impl From<atoll_store::Error> for Error {
    fn from(error: atoll_store::Error) -> Self {
        match error.kind() {
            atoll_store::ErrorKind::AlreadyExists => {
                Self::new(Code::Conflict, "there is one of that name").because(error)
            }
            // The store's own message may name its file.
            _ => Self::internal("the server's records cannot be used").because(error),
        }
    }
}
