//! One sandbox, seen from outside.

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use atoll_agent_client::{Counters, Link, Warden};
use atoll_engine::{Error, Result};
use rustix::fs::{CWD, Mode, OFlags, openat};
use tokio::net::UnixStream;

use crate::{
    directory,
    process::Identity,
    record::Record,
    tree::{MARK, Tree},
    unsafe_vigil::Vigil,
};

/// The agent's socket, in the sandbox's directory.
pub(crate) const SOCKET: &str = "agent.sock";
/// Where the guest's own files are, in the sandbox's directory.
pub(crate) const HOME: &str = "home";

/// Holds an agent that runs.
#[derive(Debug)]
pub(crate) struct LocalWarden {
    directory: PathBuf,
    agent: Identity,
    vigil: Vigil,
}

impl LocalWarden {
    /// None if the agent does not run any more.
    pub(crate) fn new(directory: PathBuf, agent: Identity) -> io::Result<Option<Self>> {
        let Some(process) = agent.open() else { return Ok(None) };
        Ok(Some(Self { directory, agent, vigil: Vigil::new(process)? }))
    }
}

#[async_trait]
impl Warden for LocalWarden {
    async fn connect(&self) -> Result<Box<dyn Link>> {
        let gone = |error: io::Error| Error::lost("the sandbox is gone").because(error);
        let place = Place::open(&self.directory).map_err(gone)?;
        Ok(Box::new(UnixStream::connect(place.socket()).await.map_err(gone)?))
    }

    fn counters(&self) -> Counters {
        let tree = Tree { mark: mark(&self.directory), agent: Some(self.agent) };
        Counters { cpu_time: tree.processor_time(), ..Counters::default() }
    }

    async fn ended(&self) {
        self.vigil.over().await;
    }

    async fn destroy(&self) -> Result<()> {
        destroy(self.directory.clone()).await
    }
}

/// A sandbox's directory, held open: a path through it is short, however deep it lies, as the
/// address of a socket has to be.
#[derive(Debug)]
pub(crate) struct Place(OwnedFd);

impl Place {
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, directory, flags, Mode::empty())?))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        format!("/proc/self/fd/{}/{SOCKET}", self.0.as_raw_fd()).into()
    }
}

/// `MARK=directory`, as it stands in the environment of a sandbox's agent.
pub(crate) fn mark(directory: &Path) -> String {
    format!("{MARK}={}", directory.display())
}

/// Ends what runs in a sandbox and removes its directory. Goes on when dropped.
pub(crate) async fn destroy(directory: PathBuf) -> Result<()> {
    let ending = tokio::spawn(async move {
        let agent = Record::read(&directory).and_then(|record| record.agent());
        Tree { mark: mark(&directory), agent }.end().await?;
        tokio::task::spawn_blocking(move || remove(&directory)).await?
    });
    let failed = || Error::internal("the sandbox could not be removed");
    ending
        .await
        .map_err(|error| failed().because(error))?
        .map_err(|error: io::Error| failed().because(error))
}

/// The guest's files first: as long as anything is left, the sandbox is listed.
fn remove(directory: &Path) -> io::Result<()> {
    directory::remove(&directory.join(HOME))?;
    directory::remove(directory)
}
