//! Landlock: which files a process and all it starts may ever touch.
#![expect(unsafe_code, reason = "Landlock's calls have no safe wrapper")]

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
    ptr,
};

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// What a rule on something that is no directory may grant.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
const SCOPE_ABSTRACT_SOCKETS: u64 = 1 << 0;
const SCOPE_SIGNALS: u64 = 1 << 1;
const RULE_PATH_BENEATH: i32 = 1;
const CREATE_RULESET_VERSION: u32 = 1;

#[repr(C)]
struct Attributes {
    files: u64,
    network: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: RawFd,
}

/// Rules under which threads can put themselves.
#[derive(Debug)]
pub(crate) struct Ruleset {
    fd: OwnedFd,
    handled: u64,
}

/// The kernel's version of the interface; an error where it has none.
pub(crate) fn landlock_version() -> io::Result<u32> {
    // SAFETY: with this flag, and only then, no attributes are read.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<Attributes>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

impl Ruleset {
    /// Rules that forbid everything this version of the interface can forbid.
    pub(crate) fn new(version: u32) -> io::Result<Self> {
        let handled = match version {
            0 => return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
            1 => (1 << 13) - 1,
            2 => (1 << 14) - 1,
            3 | 4 => (1 << 15) - 1,
            _ => (1 << 16) - 1,
        };
        let scoped = if version >= 6 { SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS } else { 0 };
        let attributes = Attributes { files: handled, network: 0, scoped };
        let size = match version {
            1..=3 => 8_usize,
            4 | 5 => 16,
            _ => size_of::<Attributes>(),
        };
        // SAFETY: the structure is at least `size` bytes and lives over the call.
        let fd = unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, 0_u32)
        };
        let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0);
        let fd = fd.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel just made it for us; it is closed on exec.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, handled })
    }

    /// Allows reading and running what is at and beneath `place`, and all else too if `writable`.
    pub(crate) fn allow(
        &self,
        place: BorrowedFd<'_>,
        directory: bool,
        writable: bool,
    ) -> io::Result<()> {
        let rights = if writable { u64::MAX } else { EXECUTE | READ_FILE | READ_DIR };
        let kind = if directory { u64::MAX } else { OF_FILES };
        let rule = PathBeneath { allowed: rights & kind & self.handled, parent: place.as_raw_fd() };
        // SAFETY: the structure lives over the call, and has the layout the kernel defines.
        let result = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.fd.as_raw_fd(),
                RULE_PATH_BENEATH,
                &raw const rule,
                0_u32,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Puts this thread, and all it will start, under the rules for ever.
    pub(crate) fn enforce(&self) -> io::Result<()> {
        // SAFETY: changes this thread's credentials and no memory.
        let result =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.fd.as_raw_fd(), 0_u32) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
