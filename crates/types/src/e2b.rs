//! The short forms under `/api/e2b`, which scripts of E2B users call.

use serde::{Deserialize, Serialize};

use crate::{id::SessionId, quantity::Span};

/// Body of `POST /api/e2b/execute`: run code in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = E2bExecute))]
#[serde(deny_unknown_fields)]
pub struct Execute {
    pub session_id: SessionId,
    pub code: String,
    /// Python, if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// Body of `POST /api/e2b/files`: write a file, given as text or as base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = E2bWriteFile))]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    pub session_id: SessionId,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
}
