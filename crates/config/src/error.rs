//! What is wrong with the settings. Its readers are the people who wrote them.

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A setting that cannot be used, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
    hint: Option<String>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
