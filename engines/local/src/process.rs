//! One process of this host, never mistaken for a later one of the same number.

use std::{fs, io, os::fd::OwnedFd, time::Duration};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// A process, told from others of its pid by when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// Ticks after the host's own start.
    pub(crate) started: u64,
}

/// What the kernel tells about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) identity: Identity,
    pub(crate) parent: i32,
    /// A letter, as `ps` shows it.
    pub(crate) state: char,
    /// Processor time of it and of the children it has waited for, in ticks.
    pub(crate) ticks: u64,
}

impl Identity {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        status(pid).map(|status| status.identity)
    }

    pub(crate) fn own() -> Option<Self> {
        Self::of(i32::try_from(std::process::id()).ok()?)
    }

    /// A descriptor of this very process; none if it has ended.
    pub(crate) fn open(self) -> Option<OwnedFd> {
        let descriptor = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::NONBLOCK).ok()?;
        // Looked at after it was opened: had the pid been given to another, it would show.
        let status = status(self.pid)?;
        (status.identity == self && !status.has_ended()).then_some(descriptor)
    }
}

impl Status {
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// It will not do anything more until it is told to.
    pub(crate) fn is_still(&self) -> bool {
        matches!(self.state, 'T' | 't') || self.has_ended()
    }
}

pub(crate) fn status(pid: i32) -> Option<Status> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Every process of this host.
pub(crate) fn all() -> io::Result<Vec<Status>> {
    let numbers = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    Ok(numbers.filter_map(status).collect())
}

/// The children of a process; none where it is gone or the kernel does not tell.
pub(crate) fn children(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let listed = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        found.extend(listed.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(found)
}

/// The variables a process was started with, where we may see them.
pub(crate) fn environment(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

pub(crate) fn signal(process: &OwnedFd, signal: Signal) {
    // One that has just ended is as good as signalled.
    let _ = pidfd_send_signal(process, signal);
}

pub(crate) fn ticks(count: u64) -> Duration {
    let frequency = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(count.saturating_mul(1000) / frequency)
}

/// Names the host's present run: pids of an earlier one mean nothing.
pub(crate) fn boot_id() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim_end().to_owned())
}

fn parse(pid: i32, bytes: &[u8]) -> Option<Status> {
    // The program's name, in parentheses, may hold anything: parentheses, and, cut off after 15
    // bytes, half a letter.
    let after = bytes.rsplit(|byte| *byte == b')').next()?;
    let fields: Vec<&str> = std::str::from_utf8(after).ok()?.split_whitespace().collect();
    let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some(Status {
        identity: Identity { pid, started: number(19)? },
        parent: fields.get(1)?.parse().ok()?,
        state: fields.first()?.chars().next()?,
        ticks: number(11)? + number(12)? + number(13)? + number(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pretend_to_be_fields() {
        let text = b"42 (a) Z 1 (b) S 7 42 42 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 987 0 0";

        let status = parse(42, text).unwrap();

        assert_eq!(
            status,
            Status {
                identity: Identity { pid: 42, started: 987 },
                parent: 7,
                state: 'S',
                ticks: 100,
            }
        );
    }

    #[test]
    fn a_name_may_be_no_text() {
        let mut bytes = b"42 (\xd0\xbf\xd1".to_vec();
        bytes.extend(b") S 7 42 42 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 987 0 0");

        assert_eq!(parse(42, &bytes).unwrap().identity.started, 987);
    }

    #[test]
    fn only_the_very_process_is_opened() {
        let own = Identity::own().unwrap();

        assert!(own.open().is_some());
        assert!(Identity { started: own.started + 1, ..own }.open().is_none());
    }
}
