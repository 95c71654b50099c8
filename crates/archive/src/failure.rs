//! Why an archive could not be made or unpacked, and at which entry.

use std::{error::Error, fmt};

use rustix::io::Errno;

use crate::name::shown;

/// What went wrong, with the entry it went wrong at, if it was at one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    entry: Option<Vec<u8>>,
    cause: Cause,
}

/// What can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It is no archive, or not whole.
    Malformed(&'static str),
    /// It is one, and asks for what is not done.
    Refused(&'static str),
    /// The format has it, and this reader does not.
    Unsupported(&'static str),
    System(Errno),
}

pub(crate) type Result<T, E = Failed> = std::result::Result<T, E>;

impl Failed {
    pub(crate) fn new(cause: Cause) -> Self {
        Self { entry: None, cause }
    }

    pub(crate) fn malformed(why: &'static str) -> Self {
        Self::new(Cause::Malformed(why))
    }

    /// Names the entry, unless one is named.
    pub(crate) fn at(mut self, entry: &[u8]) -> Self {
        self.entry.get_or_insert_with(|| entry.to_vec());
        self
    }

    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// The entry's name, as it is in the archive.
    pub fn entry(&self) -> Option<&[u8]> {
        self.entry.as_deref()
    }
}

impl From<Errno> for Failed {
    fn from(error: Errno) -> Self {
        Self::new(Cause::System(error))
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(entry) = &self.entry {
            write!(f, "{}: ", shown(entry))?;
        }
        match self.cause {
            Cause::Malformed(why) | Cause::Refused(why) | Cause::Unsupported(why) => {
                f.write_str(why)
            }
            Cause::System(error) => {
                let text = std::io::Error::from(error).to_string();
                let end = text.find(" (os error").unwrap_or(text.len());
                f.write_str(&text[..end].to_lowercase())
            }
        }
    }
}

impl Error for Failed {}
