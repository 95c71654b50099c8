//! What sandboxes of a server can be made of.

use serde::{Deserialize, Serialize};

use crate::limits::Limits;

/// The answer of `GET /api/environments`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EnvironmentList {
    pub environments: Vec<EnvironmentInfo>,
}

/// One environment of `GET /api/environments`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EnvironmentInfo {
    pub name: String,
    /// Other names it answers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    pub description: String,
    /// The engine it is made for; the server's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Every engine it has a root for.
    pub engines: Vec<String>,
    /// The language of code that does not say its own.
    pub language: String,
    pub languages: Vec<String>,
    /// What a session gets that asks for nothing else.
    pub limits: Limits,
}

/// One event of `POST /api/environments/{name}/prepare`: steps, then the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PrepareEvent {
    /// Something is being done, to one part of several perhaps.
    Step {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<String>,
        /// In words for people.
        doing: String,
        /// Bytes of the part that are done, and that there are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        done: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
    },
    /// Sandboxes can be made now. The last event, unless there is an error.
    Ready,
}
