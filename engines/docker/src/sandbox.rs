//! One container, from outside.

use std::{
    fs, io,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use atoll_agent_client::{Counters, Link, Warden, cgroup::Group};
use atoll_engine::{Error, Result};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;

use crate::{
    daemon::{Daemon, failed, status},
    place::Place,
    sys,
};

/// How long the daemon may take to end a container.
const PATIENCE: Duration = Duration::from_mins(1);
/// How soon it is asked again.
const AGAIN: Duration = Duration::from_millis(50);
/// Processes that are looked at one by one; of more, the group's own figure has to do.
const MOST_COUNTED: u64 = 512;

/// A container, whether or not it is there.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) container: String,
    pub(crate) place: Place,
    /// Only where a test leaves that wall out.
    pub(crate) host_network: bool,
}

/// The engine's hand on a running one.
#[derive(Debug)]
pub(crate) struct Watch {
    site: Site,
    /// Becomes readable when the container's first process, and with it every other, is gone.
    /// The kernel tells, so that this holds while the daemon is down.
    init: AsyncFd<OwnedFd>,
    group: Group,
    /// Who the agent is on the host: all others are guests.
    agent: Option<u32>,
}

impl Watch {
    /// Watches the container whose first process that is.
    pub(crate) fn new(site: Site, container: &str, pid: i32) -> io::Result<Self> {
        let number = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
        let init = pidfd_open(number, PidfdFlags::NONBLOCK)?;
        // Looked at after opening: what is in the container's own group now is what was opened.
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        if !groups.contains(container) {
            return Err(io::Error::other("the container's processes are not seen from here"));
        }
        let init = sys::watched(init)?;
        Ok(Self {
            site,
            init,
            group: Group::of(pid)?,
            agent: uid_and_threads(pid).map(|(uid, _)| uid),
        })
    }

    pub(crate) async fn over(&self) {
        // Fails only if the runtime is shutting down.
        let _ = self.init.readable().await;
    }

    /// Guests' processes and threads; the agent's own are in the same group.
    fn guests(&self) -> Option<u64> {
        let counted = self.group.members().into_iter().filter_map(uid_and_threads);
        self.agent
            .map(|agent| counted.filter(|(uid, _)| *uid != agent).map(|(_, threads)| threads).sum())
    }
}

#[async_trait]
impl Warden for Watch {
    async fn connect(&self) -> Result<Box<dyn Link>> {
        let link = self.site.place.connect().await;
        let link = link.map_err(|error| Error::lost("the sandbox is gone").because(error))?;
        Ok(Box::new(link))
    }

    fn counters(&self) -> Counters {
        let counters = self.group.counters();
        let all = counters.pids;
        let pids = all.and_then(|all| if all > MOST_COUNTED { Some(all) } else { self.guests() });
        Counters { pids, ..counters }
    }

    fn has_own_loopback(&self) -> bool {
        !self.site.host_network
    }

    async fn ended(&self) {
        self.over().await;
    }

    async fn destroy(&self) -> Result<()> {
        self.site.clone().clear().await
    }
}

impl Site {
    /// Ends and removes everything of a sandbox. Goes on if the future is dropped.
    pub(crate) async fn clear(self) -> Result<()> {
        tokio::spawn(async move {
            self.remove().await?;
            let place = self.place;
            let cleared = tokio::task::spawn_blocking(move || place.clear()).await;
            cleared.map_err(io::Error::other).flatten().map_err(|error| {
                Error::internal("the sandbox's directory cannot be removed").because(error)
            })
        })
        .await
        .unwrap_or_else(|error| Err(Error::internal("a sandbox was not removed").because(error)))
    }

    /// Removes the container; waits if somebody else is at it.
    async fn remove(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.daemon.remove(&self.container).await {
                Ok(()) => return Ok(()),
                // A conflict: its removal is under way. A fault: something in it is busy still.
                Err(error)
                    if matches!(status(&error), Some(409 | 500)) && Instant::now() < deadline =>
                {
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => return Err(failed("remove the sandbox", error)),
            }
        }
    }
}

fn uid_and_threads(pid: i32) -> Option<(u32, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()
    };
    Some((field("Uid:")?.parse().ok()?, field("Threads:")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_counted_with_its_threads() {
        let own = std::process::id().cast_signed();

        let (uid, threads) = uid_and_threads(own).unwrap();

        assert_eq!(uid, rustix::process::getuid().as_raw());
        assert!(threads >= 1);
        assert_eq!(uid_and_threads(i32::MAX), None);
    }
}
