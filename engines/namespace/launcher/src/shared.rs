//! Directories of the host that guests may be able to write to.
//!
//! Since such a directory was checked, any part of its path may have become a link to somewhere
//! else, and none is followed.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
};

use atoll_launcher::{Bind, Failure, Step};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};

use crate::{failure::At as _, mounts, sys};

/// The attributes of the mount of `bind`.
pub(crate) fn attributes(bind: &Bind) -> u64 {
    sys::NO_SUID | sys::NO_DEV | if bind.writable { 0 } else { sys::READ_ONLY }
}

/// A copy of what is mounted at `path`, a directory.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let directory = openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?;
    mounts::copy(directory.as_fd(), "")
}

/// The directory of `bind` with the ids it has, and what is to be covered of it: for an ordinary
/// user, whose guests are that user to it.
pub(crate) fn as_it_is(bind: &Bind) -> Result<(OwnedFd, Vec<OwnedFd>), Failure> {
    let tree = open(&bind.source).at(Step::Bind, &bind.source)?;
    sys::set_mount(tree.as_fd(), attributes(bind), None, true).at(Step::Bind, &bind.source)?;
    let hidden = hidden(bind, &tree).at(Step::Bind, &bind.source)?;
    Ok((tree, hidden))
}

/// What is to be covered of a mount, found by who can find it wherever it lies. What is not there
/// needs no cover.
pub(crate) fn hidden(bind: &Bind, tree: &OwnedFd) -> rustix::io::Result<Vec<OwnedFd>> {
    let find = |path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(tree, path, flags, Mode::empty(), resolve) {
            Err(Errno::NOENT) => None,
            found => Some(found),
        }
    };
    bind.hidden.iter().filter_map(find).collect()
}
