//! What an engine sees and does from outside, whatever the agent says.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use atoll_engine::Result;
use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream to an agent.
pub trait Link: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Link for T {}

/// The engine's hand on one sandbox.
#[async_trait]
pub trait Warden: fmt::Debug + Send + Sync {
    /// Opens another byte stream to the agent.
    async fn connect(&self) -> Result<Box<dyn Link>>;

    /// What the sandbox's guests have used so far.
    fn counters(&self) -> Counters;

    /// Whether the sandbox has a loopback of its own. If not, its ports are the host's, and nobody
    /// is connected to them.
    fn has_own_loopback(&self) -> bool {
        false
    }

    /// Returns when the sandbox has ended.
    async fn ended(&self);

    /// Ends the sandbox and removes every trace of it. Idempotent; not stopped by dropping.
    async fn destroy(&self) -> Result<()>;
}

/// Figures of the kernel, none where it keeps none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub cpu_time: Option<Duration>,
    pub memory: Option<u64>,
    pub peak_memory: Option<u64>,
    /// Processes the kernel has killed for want of memory.
    pub oom_kills: Option<u64>,
    pub pids: Option<u64>,
    /// Times a process could not be made because there were too many.
    pub pids_refused: Option<u64>,
}
