//! What is said beside the bytes over `GET /api/sessions/{id}/terminal`: binary frames are what is
//! typed and what is shown, text frames are these.

use serde::{Deserialize, Serialize};

use crate::{
    error::Problem,
    process::{Process, ProcessEnd, TerminalSize},
};

/// From the client, such as `{"resize": {"rows": 50, "columns": 132}}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TerminalControl {
    Resize(TerminalSize),
}

/// From the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TerminalEvent {
    /// The first: which process this is, for coming back.
    Attached(Process),
    /// The next byte shown is this one of all that were ever written; those between are no longer
    /// kept.
    Skipped { offset: u64 },
    /// The last: the process has ended.
    Ended(ProcessEnd),
    /// Something the client asked for was not done; after a failure of the server, the last.
    Error(Problem),
}
