//! What happens to files while somebody looks.

use serde::{Deserialize, Serialize};

/// One event of `GET …/files/watch`, in order. Paths are the guest's, from the root; bytes that
/// are no UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    /// It is there now: made, or moved here from where nobody looks.
    Created { path: String, directory: bool },
    /// A file's content changed. Several changes in a row may be told as one.
    Written { path: String },
    /// It is no longer there: removed, or moved to where nobody looks. Of the watched directory
    /// itself: the last event.
    Removed { path: String, directory: bool },
    /// It has another name, replacing what had it. All a directory holds moved along.
    Moved { from: String, path: String, directory: bool },
    /// Permissions, owner, times or links changed.
    Attributes { path: String, directory: bool },
    /// Events were lost: look at everything again. What happens from now on is told.
    Overflow,
    /// What happens in this directory, and perhaps in others, is not told: there are more than
    /// can be watched, or it cannot be read. Told of the first of many.
    Unwatched { path: String },
}
