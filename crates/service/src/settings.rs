//! What the operator decides.

use std::{path::PathBuf, time::Duration};

use atoll_types::{
    limits::Limits,
    quantity::{Size, Span},
};

use crate::{limits, mounts::AllowedMount};

/// The operator's choices, already resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The engine of requests and environments that name none. Never replaced by another.
    pub default_engine: String,
    pub default_environment: String,
    /// A directory of environments, one YAML file each, besides the built-in ones.
    pub environments: Option<PathBuf>,
    /// Whether requests marked trusted may use an engine without isolation.
    pub allow_trusted: bool,
    /// Directories of the host that requests may mount.
    pub mounts: Vec<AllowedMount>,
    /// What a sandbox gets if neither the request nor its environment says.
    pub default_limits: Limits,
    /// The most that a request may ask for; what is not said here is not bounded.
    pub max_limits: Limits,
    /// How long a session lives that does not say.
    pub session_timeout: Duration,
    pub max_session_timeout: Duration,
    /// How long an execution may take that does not say.
    pub execution_timeout: Duration,
    pub max_execution_timeout: Duration,
    /// A session ends after doing nothing for this long; none: only at its deadline.
    pub idle_timeout: Option<Duration>,
    /// Sandboxes at one time, one-shots included.
    pub max_sessions: usize,
    /// End the sessions when the server stops, instead of leaving them to the next one.
    pub end_sessions_on_shutdown: bool,
    /// How long ended sessions and executions are remembered.
    pub keep_records: Duration,
    /// How often deadlines and idleness are looked at.
    pub reap_every: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_hours(1);
        Self {
            default_engine: "namespace".to_owned(),
            default_environment: "base".to_owned(),
            environments: None,
            allow_trusted: false,
            mounts: Vec::new(),
            default_limits: limits::DEFAULTS,
            max_limits: Limits {
                memory: Some(Size(16 << 30)),
                cpus: None,
                cpu_time: Some(Span(24 * HOUR)),
                pids: Some(16384),
                open_files: Some(65536),
                output: Some(Size(atoll_engine::MAX_OUTPUT)),
                disk: Some(Size(64 << 30)),
            },
            session_timeout: HOUR,
            max_session_timeout: 24 * HOUR,
            execution_timeout: Duration::from_mins(5),
            max_execution_timeout: 24 * HOUR,
            idle_timeout: Some(HOUR / 2),
            max_sessions: 1000,
            end_sessions_on_shutdown: false,
            keep_records: 7 * 24 * HOUR,
            reap_every: Duration::from_secs(1),
        }
    }
}
