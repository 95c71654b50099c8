//! The system calls no library has a safe function for.

#![expect(unsafe_code, reason = "raw system calls")]

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, OwnedFd},
};

use tokio::io::{Interest, unix::AsyncFd};

/// Takes the lock on one byte of an open file; false if another open file has it.
///
/// The lock belongs to the open file, not to the process: it lasts until the last descriptor of
/// it, in whatever process, is closed.
pub(crate) fn lock_byte(file: BorrowedFd<'_>, byte: u32) -> io::Result<bool> {
    // SAFETY: an all-zero lock is valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(libc::F_WRLCK).unwrap_or_default();
    lock.l_start = byte.into();
    lock.l_len = 1;
    // SAFETY: the lock lives through the call and is of the type this operation takes.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        error => Err(error),
    }
}

/// Which version of Landlock the kernel has; none without it.
pub(crate) fn landlock_version() -> Option<i64> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call takes no structure and makes nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    (version > 0).then_some(version)
}

/// Lets the runtime tell when a descriptor is readable.
pub(crate) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor until it is dropped.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }
        .map_err(io::Error::from)
}
