//! What a server's engines are and give.

use serde::{Deserialize, Serialize};

/// The answer of `GET /api/engines`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EngineList {
    pub engines: Vec<EngineInfo>,
}

/// One engine of `GET /api/engines`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EngineInfo {
    pub name: String,
    pub available: bool,
    pub isolation: Isolation,
    /// Why it is not available, and how to get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How well each limit holds here.
    pub grades: Vec<Grade>,
    /// Facts about this host a reader may want: cgroup version, Landlock, kernel.
    pub facts: Vec<Fact>,
}

/// What separates a sandbox from its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Nothing: trusted code only.
    None,
    /// One kernel, fenced.
    Kernel,
    /// A kernel of its own.
    Machine,
}

/// How well one limit holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Grade {
    pub limit: String,
    pub strength: Strength,
    /// By what, and what is missing.
    pub by: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// Asking for it is refused.
    Refused,
    /// Holds against accidents, not against every program.
    Weak,
    Full,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Fact {
    pub name: String,
    pub value: String,
}
