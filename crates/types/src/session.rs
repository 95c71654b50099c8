//! A client's stateful use of one sandbox.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    engine::Grade,
    id::{SandboxId, SessionId},
    limits::Limits,
    quantity::Span,
};

/// Body of `POST /api/sessions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// What the sandbox is made of; the server's default if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    #[serde(default, alias = "provider", skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The session ends after this long, whatever it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Variables of everything that runs in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountRequest>,
    /// Yours; given back, and filtered by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The code to come is known and trusted: an engine without isolation will do.
    #[serde(default)]
    pub trusted: bool,
}

/// A directory of the host to show inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MountRequest {
    /// A directory of the host, beneath one the operator allows.
    pub host: String,
    /// Where it appears.
    pub guest: String,
    #[serde(default)]
    pub mode: MountMode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MountMode {
    #[default]
    Ro,
    Rw,
}

/// Body of `POST /api/sessions/{id}/timeout`: from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SetTimeout {
    pub timeout: Span,
}

/// A session as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Session {
    pub session_id: SessionId,
    pub sandbox_id: SandboxId,
    pub engine: String,
    /// The same as `engine`, for clients that say it so.
    pub provider: String,
    pub environment: String,
    pub state: State,
    /// Why it is no longer there, once it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// Where the session is, relative to the server.
    pub url: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub limits: Limits,
    /// How its limits hold, where they do not hold fully. One that is `refused` is a default of the
    /// server's that the engine cannot hold there: nobody asked for it, and it was left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grades: Vec<Grade>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// Where a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    Creating,
    Ready,
    Busy,
    Destroying,
    Gone,
    Failed,
    Lost,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Someone deleted it.
    Deleted,
    /// Its deadline came.
    Expired,
    /// Nobody used it and nothing ran in it.
    Idle,
    /// The engine could not make it.
    CreateFailed,
    /// Its sandbox was gone, or did not answer, when it was needed.
    SandboxLost,
    /// The server stopped, or crashed while making it.
    ServerStopped,
}

/// A page of sessions, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionPage {
    pub sessions: Vec<Session>,
    /// Give it back as `?after=` for what follows; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a sandbox uses now.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Metrics {
    /// Seconds of processor time so far.
    pub cpu_time: Option<Span>,
    pub memory: Option<u64>,
    pub peak_memory: Option<u64>,
    pub pids: Option<u64>,
    /// Bytes used and there in the sandbox's writable places.
    pub disk_used: Option<u64>,
    pub disk_total: Option<u64>,
}
