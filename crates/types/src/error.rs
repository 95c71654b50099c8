//! The body of every answer that says no.

use serde::{Deserialize, Serialize};

/// `{"error": {"code", "message", "hint"}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    pub error: Problem,
}

/// What went wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Stable, for programs: `not_found`, `invalid_request`, …
    pub code: String,
    /// For people. Names no path of the server's machine.
    pub message: String,
    /// What to try next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
