//! Starting a program with descriptors at numbers of our choice.
#![expect(unsafe_code, reason = "what runs between fork and exec must be declared safe")]

use std::{
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::{Child, Command},
};

/// Starts `command` with descriptors 3, 4, … being `fds`.
pub(crate) fn spawn(mut command: Command, fds: Vec<OwnedFd>) -> Child {
    let numbers: Vec<i32> = fds.iter().map(OwnedFd::as_raw_fd).collect();
    let install = move || {
        // Out of the way first: a number may be another's goal.
        let mut moved = [0; 16];
        for (index, fd) in numbers.iter().enumerate() {
            // SAFETY: changes descriptors of the child alone.
            moved[index] = unsafe { libc::fcntl(*fd, libc::F_DUPFD_CLOEXEC, 100) };
        }
        for (goal, fd) in (3..).zip(&moved[..numbers.len()]) {
            // SAFETY: as above; the copy is kept over exec.
            if unsafe { libc::dup2(*fd, goal) } < 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: only system calls, no allocation, no locks.
    unsafe { command.pre_exec(install) };
    let child = command.spawn().expect("the agent starts");
    drop(fds);
    child
}
