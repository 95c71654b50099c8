//! What a sandbox or one execution may use.

use serde::{Deserialize, Serialize};

use crate::quantity::{Size, Span};

/// Bounds on a sandbox as a whole. What is not said is the environment's own choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Memory of all processes together, and of what they keep in memory-backed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Processors' worth of time per time passed: 0.5 is half of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Processor time of one execution, all its processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<Span>,
    /// Processes and threads at one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Open files of one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u32>,
    /// Bytes of standard output, and as many of standard error, that one execution may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Size>,
    /// Bytes in the sandbox's own writable places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Size>,
}

impl Limits {
    /// These limits, with what they leave open taken from `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            memory: self.memory.or(others.memory),
            cpus: self.cpus.or(others.cpus),
            cpu_time: self.cpu_time.or(others.cpu_time),
            pids: self.pids.or(others.pids),
            open_files: self.open_files.or(others.open_files),
            output: self.output.or(others.output),
            disk: self.disk.or(others.disk),
        }
    }
}

/// A limit that an execution ran into on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitHit {
    Memory,
    Pids,
    Disk,
    OpenFiles,
    Cpu,
    Output,
}
