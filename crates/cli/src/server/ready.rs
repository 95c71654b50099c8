//! What a server says to the command that started it: that it is ready, or why it is not.

use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// One line of JSON on the server's standard output, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum Word {
    Ready,
    Failed { message: String, hint: Option<String> },
}

impl From<&Failure> for Word {
    fn from(failure: &Failure) -> Self {
        Self::Failed { message: failure.message.clone(), hint: failure.hint.clone() }
    }
}

impl Word {
    /// Says it. Whether anybody listens makes no difference.
    pub(crate) fn say(&self) {
        if let Ok(text) = serde_json::to_string(self) {
            let mut out = io::stdout();
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        }
    }
}
