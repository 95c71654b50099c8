//! One error: what the caller can do about it, a sentence for people, and the cause for the log.

use std::error::Error as StdError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. The message names no path of the host; the source may.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What the caller can do, not where it happened.
///
/// Deliberately exhaustive: a new one makes every mapping that must decide about it (HTTP status,
/// exit code, retry) fail to compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request makes no sense; another one might.
    Invalid,
    /// What it names is not there.
    NotFound,
    /// What it would make is there already.
    AlreadyExists,
    /// Understood, and not allowed.
    Denied,
    /// This engine, here, cannot do that.
    Unsupported,
    /// A limit is reached; less, or later, may work.
    Exhausted,
    /// The engine is not usable on this host.
    Unavailable,
    /// No answer in time.
    TimedOut,
    /// The sandbox is gone.
    Lost,
    /// Our fault.
    Internal,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
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

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    pub fn lost(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Lost, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }
}
