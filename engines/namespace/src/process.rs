//! Which process, beyond doubt: a number is given to another after its process has ended.

use std::{
    fs, io,
    os::fd::{AsFd as _, OwnedFd},
    process,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
    },
};
use serde::{Deserialize, Serialize};

/// A process of this boot of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// In clock ticks since boot.
    pub(crate) started: u64,
    /// Names the boot.
    pub(crate) boot: String,
}

impl Identity {
    /// Who has this number now; none if nobody.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, started: started(pid)?, boot: boot().ok()? })
    }

    pub(crate) fn own() -> Option<Self> {
        Self::of(i32::try_from(process::id()).ok()?)
    }

    /// The process, if it still is that one.
    pub(crate) fn open(&self) -> Option<OwnedFd> {
        let opened = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::NONBLOCK).ok()?;
        // Looked at after opening: if it is the right one now, what was opened is it.
        (Self::of(self.pid)? == *self).then_some(opened)
    }
}

/// Ends a process and waits until it is gone.
pub(crate) fn end(process: &OwnedFd, patience: Duration) -> io::Result<()> {
    match pidfd_send_signal(process, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(error.into()),
    }
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes a child that has ended out of the kernel's list. Of somebody else's: does nothing.
pub(crate) fn reap(process: &OwnedFd) {
    let _ = waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
}

fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything: count from its end.
    let after = stat.rsplit_once(") ")?.1;
    after.split(' ').nth(19)?.parse().ok()
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_and_nobody_else() {
        let own = Identity::own().unwrap();
        assert!(own.open().is_some());
        assert!(Identity { started: own.started + 1, ..own.clone() }.open().is_none());
        assert!(Identity { boot: "another".to_owned(), ..own }.open().is_none());
    }

    #[test]
    fn a_process_that_was_ended_is_gone() {
        let mut child = process::Command::new("sleep").arg("1000").spawn().unwrap();
        let identity = Identity::of(child.id().try_into().unwrap()).unwrap();
        end(&identity.open().unwrap(), Duration::from_secs(30)).unwrap();
        child.wait().unwrap();
        assert!(identity.open().is_none());
    }
}
