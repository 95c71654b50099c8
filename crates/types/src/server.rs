//! The server itself: that it lives, and which one it is.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The answer of `GET /healthz`, for anyone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Health {
    /// Always `ok`: a server that is not well does not answer.
    pub status: String,
}

/// The answer of `GET /api/version`, with which a client knows whom it talks to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Version {
    /// Of the program; a client of another one may find fields it does not know.
    pub version: String,
    /// The server's process.
    pub pid: u32,
    pub started_at: Timestamp,
}
