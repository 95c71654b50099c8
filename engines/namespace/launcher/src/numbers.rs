//! Leaves the first numbers of the pid namespace to the agent.
//!
//! When the kernel comes to the last number it starts again from 300, never below. So once it has
//! counted past that, what is below is given only to who chooses it.

use std::{io, os::fd::AsFd as _};

use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::sys::{self, Cloned};

/// Has the kernel count past `own`. This process must be the only one of its namespace.
pub(crate) fn pass(own: i32) -> io::Result<()> {
    if own == 0 {
        return Ok(());
    }
    // The kernel may have been told already, if it has the file for it: see `proc`.
    loop {
        match sys::clone(0)? {
            Cloned::Child => sys::exit(),
            Cloned::Parent(pid, pidfd) => {
                waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)?;
                if pid.as_raw_nonzero().get() > own {
                    return Ok(());
                }
            }
        }
    }
}
