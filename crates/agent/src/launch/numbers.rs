//! Numbers of processes that only the agent's own have.
//!
//! Where guests have the agent's user, the kernel would let them signal its processes. What they
//! cannot name they cannot signal: the kernel gives the first few hundred numbers of a pid
//! namespace to nobody once it has counted past them, except to who may choose. The agent chooses
//! from them, and the guests' filter refuses every call that names one.

use std::collections::HashSet;

use rustix::process::{Pid, getpid};

use crate::sys::{self, Fork};

/// The spawner's number; the agent's own is 1.
pub(crate) const SPAWNER: i32 = 2;

/// Forks a keeper, with one of the agent's numbers if it has any.
pub(super) fn fork_keeper(own: i32, taken: &HashSet<Pid>) -> std::io::Result<Fork> {
    if own == 0 {
        return sys::fork();
    }
    for number in SPAWNER + 1..own {
        if Pid::from_raw(number).is_some_and(|pid| taken.contains(&pid)) {
            continue;
        }
        match sys::fork_as(number) {
            // One that has ended, and that nobody has waited for yet.
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            forked => return forked,
        }
    }
    Err(std::io::Error::from_raw_os_error(libc::EAGAIN))
}

/// Refuses to be a guest with a number of the agent's.
pub(super) fn check_guest(own: i32) -> std::io::Result<()> {
    if getpid().as_raw_nonzero().get() < own {
        return Err(std::io::Error::from_raw_os_error(libc::EAGAIN));
    }
    Ok(())
}
