//! Where a sandbox is on the host: its directory and its control groups.

use std::{
    fs::{self, DirBuilder},
    io,
    os::{
        fd::AsRawFd as _,
        unix::{fs::DirBuilderExt as _, net::UnixListener},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use atoll_agent_client::cgroup::{Controller, Group, Host};
use atoll_engine::SandboxId;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::{config::Config, process, record::Record};

const ALL: [Controller; 4] =
    [Controller::Cpu, Controller::CpuTime, Controller::Memory, Controller::Pids];

/// How long the kernel may take to end everything in a sandbox.
const PATIENCE: Duration = Duration::from_secs(30);

/// One sandbox's place, whether or not anything is there.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    /// The agent's control group.
    pub(crate) agent: Group,
    /// The guests'.
    pub(crate) guests: Group,
}

impl Place {
    /// `limited` says whether guests have a limit on processors: without one they need no group
    /// for it.
    pub(crate) fn new(config: &Config, groups: &Host, id: &SandboxId, limited: bool) -> Self {
        let group = config.group(id);
        let name = |role| PathBuf::from(format!("atoll/{group}.{role}"));
        let guests = if limited { &ALL[..] } else { &ALL[1..] };
        Self {
            directory: config.state_dir.join(id.as_str()),
            agent: Group::new(groups, &name("agent"), &[Controller::Memory, Controller::Pids]),
            guests: Group::new(groups, &name("guest"), guests),
        }
    }

    /// Makes the directory, which takes the id.
    pub(crate) fn take(&self) -> io::Result<()> {
        if let Some(parent) = self.directory.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        DirBuilder::new().mode(0o700).create(&self.directory)
    }

    /// A socket in the directory, for the agent to listen on.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        let (_directory, path) = short(&self.directory)?;
        UnixListener::bind(path)
    }

    /// Connects to the agent.
    pub(crate) async fn connect(&self) -> io::Result<tokio::net::UnixStream> {
        let (_directory, path) = short(&self.directory)?;
        tokio::net::UnixStream::connect(path).await
    }

    /// Ends what runs here and removes all of it. Blocks until nothing is left.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let record = Record::read(&self.directory);
        if let Some(init) = record.and_then(|record| record.init?.open()) {
            // The kernel ends every process of a pid namespace with its first one, and only then
            // says that the first one is gone.
            process::end(&init, PATIENCE)?;
            process::reap(&init);
        }
        self.guests.remove()?;
        self.agent.remove()?;
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The socket's path by way of an open directory: socket addresses are 107 bytes long at most.
fn short(directory: &Path) -> io::Result<(impl Sized, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, directory, flags, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/socket", opened.as_raw_fd()));
    Ok((opened, path))
}
