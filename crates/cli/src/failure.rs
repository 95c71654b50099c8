//! What stops a command: a sentence, what to do about it, and the exit code.

use std::fmt;

pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Exit code of what is Atoll's, or the request's, fault and not the guest's.
pub(crate) const OURS: u8 = 125;
/// Exit code of a command line that makes no sense, as clap has it.
pub(crate) const USAGE: u8 = 2;
/// Exit code of a program or interpreter that is not there, as shells have it.
pub(crate) const NOT_THERE: u8 = 127;

/// Why a command could not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The exit code.
    pub(crate) code: u8,
    /// The server's code for it, if a server said it.
    pub(crate) kind: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: OURS, kind: None }
    }

    /// The command line is at fault.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, ..Self::new(message) }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<atoll_config::Error> for Failure {
    fn from(error: atoll_config::Error) -> Self {
        let hint = error.advice().map(ToOwned::to_owned);
        Self { hint, ..Self::new(error.to_string()) }
    }
}

/// Gives an error the sentence it lacks: what was being done, to what.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::new(format!("{}: {error}", what())))
    }
}
