//! What can go wrong, by what the caller can do about it.

use std::error::Error as StdError;

use atoll_types::error::{ErrorBody, Problem};

pub type Result<T, E = Error> = std::result::Result<T, E>;

type Cause = Box<dyn StdError + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered, and the answer is no.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// There was no connection, so nothing was asked.
    #[error("cannot reach the server at {at}")]
    Unreachable {
        at: String,
        #[source]
        source: Cause,
    },
    /// The connection broke after the request was on its way: it may have been done or not.
    #[error("the connection to the server broke")]
    Broken(#[source] Cause),
    /// The answer is not one of Atoll's.
    #[error("the server's answer makes no sense: {0}")]
    Garbled(String),
    /// The address, the key or the certificates cannot be used.
    #[error("{0}")]
    Settings(String),
}

/// The server's own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Refused {
    /// The HTTP status; 200 if a stream failed after it had begun.
    pub status: u16,
    /// Stable, for programs.
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
}

impl Error {
    /// What the server said, if it said anything.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            _ => None,
        }
    }

    /// The server's code, such as `not_found`.
    pub fn code(&self) -> Option<&str> {
        self.refused().map(|refused| refused.code.as_str())
    }

    pub(crate) fn broken(source: impl Into<Cause>) -> Self {
        Self::Broken(source.into())
    }
}

impl Refused {
    pub(crate) fn new(status: u16, problem: Problem) -> Self {
        let Problem { code, message, hint } = problem;
        Self { status, code, message, hint }
    }

    /// Reads an error body; an answer without one (a proxy's, say) is told by its status.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let problem = serde_json::from_slice(body).map_or_else(
            |_| Problem {
                code: "unknown".to_owned(),
                message: format!("the server answered with status {status}"),
                hint: None,
            },
            |ErrorBody { error }| error,
        );
        Self::new(status, problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_body_is_taken_over() {
        let body = br#"{"error":{"code":"not_found","message":"no","hint":"look"}}"#;

        let refused = Refused::read(404, body);

        assert_eq!((refused.status, refused.code.as_str()), (404, "not_found"));
        assert_eq!(refused.hint.as_deref(), Some("look"));
    }

    #[test]
    fn an_answer_that_is_not_atolls_is_told_by_its_status() {
        let refused = Refused::read(502, b"<html>");

        assert_eq!((refused.status, refused.code.as_str()), (502, "unknown"));
    }
}
