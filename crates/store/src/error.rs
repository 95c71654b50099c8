//! One error: what the caller can do about it, a sentence, and the cause for the log.

use std::error::Error as StdError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. The message is for the operator and may name the file.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The file is damaged, cut short, or no store of Atoll's.
    Damaged,
    /// A newer Atoll wrote the file.
    Newer,
    /// A name or id is in use.
    AlreadyExists,
    /// The file cannot be used now: permissions, no room, another process keeps it locked.
    Unavailable,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// A row that does not hold what this program writes.
    pub(crate) fn row(what: &str, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Damaged, format!("a stored {what} makes no sense")).because(source)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let (kind, message) = match &error {
            sqlx::Error::Database(inner) if inner.is_unique_violation() => {
                (ErrorKind::AlreadyExists, "the store holds one of that name")
            }
            // SQLITE_CORRUPT and SQLITE_NOTADB, with their extended codes in the upper bytes.
            sqlx::Error::Database(inner) if matches!(primary(inner.as_ref()), Some(11 | 26)) => {
                (ErrorKind::Damaged, "the store's file is damaged")
            }
            _ => (ErrorKind::Unavailable, "the store cannot be used"),
        };
        Self::new(kind, message).because(error)
    }
}

fn primary(error: &dyn sqlx::error::DatabaseError) -> Option<u32> {
    error.code()?.parse::<u32>().ok().map(|code| code & 0xff)
}
