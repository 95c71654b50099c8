//! All processes of a sandbox: found, counted, ended.
//!
//! Whatever a sandbox starts stays below its agent, because the agent and its keepers take in
//! what loses its parent. The agent's own processes also carry a mark in their environment, so
//! that they are found where no record of them was written, or the agent itself is gone.

use std::{
    collections::{HashMap, HashSet},
    io,
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::process::Signal;
use tokio::time;

use crate::{
    process::{self, Identity, Status},
    unsafe_vigil::Vigil,
};

/// The variable whose value is the sandbox's directory, in the agent and what it forks.
pub(crate) const MARK: &str = "ATOLL_SANDBOX";

/// How long processes may take to come to a stop before they are killed as they are.
const STILL: Duration = Duration::from_secs(2);

/// How long ending all of them may take; one that waits for a device may take longer, and is tried
/// again.
const ENDED: Duration = Duration::from_secs(30);

/// How a sandbox's processes are recognised.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    /// `MARK=directory`.
    pub(crate) mark: String,
    pub(crate) agent: Option<Identity>,
}

impl Tree {
    /// The agent, what carries the mark, and everything below them.
    pub(crate) fn processes(&self) -> io::Result<Vec<Status>> {
        let all = process::all()?;
        let roots = all.iter().filter(|status| self.is_root(status));
        let members = below(&all, roots.map(|status| status.identity.pid).collect());
        Ok(all.into_iter().filter(|status| members.contains(&status.identity.pid)).collect())
    }

    /// Processor time of all that runs or ran below the agent, not of the agent itself.
    ///
    /// Asked often, so it looks at the agent's descendants only, where the kernel names them.
    pub(crate) fn processor_time(&self) -> Option<Duration> {
        let mut ahead = process::children(self.agent?.pid)?;
        let mut ticks = 0;
        while let Some(pid) = ahead.pop() {
            ticks += process::status(pid).map_or(0, |status| status.ticks);
            ahead.extend(process::children(pid).unwrap_or_default());
        }
        Some(process::ticks(ticks))
    }

    /// Ends all of it. Returns when nothing is left, or fails if that takes too long.
    pub(crate) async fn end(&self) -> io::Result<()> {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "processes that do not end");
        time::timeout(ENDED, self.end_all()).await.map_err(late)?
    }

    async fn end_all(&self) -> io::Result<()> {
        loop {
            let members = self.hold().await?;
            if members.is_empty() {
                return Ok(());
            }
            for member in members.values() {
                process::signal(member, Signal::KILL);
            }
            for member in members.into_values() {
                Vigil::new(member)?.over().await;
            }
        }
    }

    /// Stops every process, so that none can start another, and gives hold of them.
    async fn hold(&self) -> io::Result<HashMap<Identity, OwnedFd>> {
        let deadline = time::Instant::now() + STILL;
        let mut held = HashMap::new();
        loop {
            let members = self.processes()?;
            let mut is_still = true;
            for status in members.iter().filter(|status| !status.has_ended()) {
                is_still &= status.is_still();
                if held.contains_key(&status.identity) {
                    continue;
                }
                if let Some(descriptor) = status.identity.open() {
                    process::signal(&descriptor, Signal::STOP);
                    held.insert(status.identity, descriptor);
                    is_still = false;
                }
            }
            if is_still || time::Instant::now() > deadline {
                return Ok(held);
            }
            time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn is_root(&self, status: &Status) -> bool {
        self.agent == Some(status.identity)
            || process::environment(status.identity.pid)
                .split(|byte| *byte == 0)
                .any(|variable| variable == self.mark.as_bytes())
    }
}

/// These pids and those of all their descendants.
fn below(all: &[Status], roots: Vec<i32>) -> HashSet<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for status in all {
        children.entry(status.parent).or_default().push(status.identity.pid);
    }
    let mut found = HashSet::new();
    let mut ahead = roots;
    while let Some(pid) = ahead.pop() {
        if found.insert(pid) {
            ahead.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(pid: i32, parent: i32) -> Status {
        Status { identity: Identity { pid, started: 1 }, parent, state: 'S', ticks: 0 }
    }

    #[test]
    fn descendants_are_found_and_nobody_else() {
        let all = [status(1, 0), status(2, 1), status(3, 2), status(4, 3), status(5, 1)];

        assert_eq!(below(&all, vec![2]), HashSet::from([2, 3, 4]));
    }
}
