//! What an operator, or a test, chooses.

use std::path::PathBuf;

/// How the engine works on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where each sandbox has a directory, readable by the server's user only.
    pub state_dir: PathBuf,
    /// What no sandbox may be shown, besides the state directory and what is the daemon's.
    pub private: Vec<PathBuf>,
    /// The daemon's socket, as a path or as `unix://…`; empty for the usual places.
    pub host: String,
    /// A file in the form of Docker's own `config.json`: credentials for registries.
    pub credentials: Option<PathBuf>,
    /// Walls left out, for tests that must see a check fail. Not to be read from any file.
    pub weaknesses: Vec<Weakness>,
}

/// A wall that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weakness {
    /// No system call is refused, by Docker's filter or by Atoll's.
    Seccomp,
    /// The container has the capabilities its daemon gives to any.
    Capabilities,
    /// `no_new_privs` is not set for the container.
    NewPrivileges,
    /// The root file system can be written as far as ids allow.
    WritableRoot,
    /// The kernel's own files in `/proc` and `/sys` can be seen, and written as far as ids allow.
    Proc,
    /// Guests are the agent's user, with its capabilities.
    Root,
    /// The host's network.
    Network,
    /// The host's message queues, semaphores and shared memory.
    Ipc,
    /// No limit on memory.
    Memory,
    /// No limit on the number of processes.
    Pids,
    /// No limit on processor time per time.
    Cpus,
    /// No limit on files.
    Disk,
    /// The agent is as likely to be killed for want of memory as a guest is.
    Agent,
    /// Volumes an image declares are made, on the host's disk.
    ImageVolumes,
}

impl Config {
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            private: Vec::new(),
            host: String::new(),
            credentials: None,
            weaknesses: Vec::new(),
        }
    }

    pub(crate) fn weak(&self, weakness: Weakness) -> bool {
        self.weaknesses.contains(&weakness)
    }
}
