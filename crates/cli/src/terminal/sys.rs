//! Watching a descriptor.
#![expect(unsafe_code, reason = "the runtime cannot see who owns a descriptor")]

use std::{io, os::fd::OwnedFd};

use tokio::io::unix::AsyncFd;

/// Lets the runtime watch a descriptor that does not block.
pub(super) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: it owns its descriptor and names the same one as long as it lives.
    Ok(unsafe { AsyncFd::register(fd) }?)
}
