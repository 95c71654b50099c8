//! `/dev`: a few harmless devices of the host, terminals of its own, shared memory of its own.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat, symlinkat},
    mount::MountAttrFlags,
};

use crate::{mounts, sys};

const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Terminals one sandbox may have: the host has 4096 for all.
const TERMINALS: &str = "64";

/// The host's device files, while they can still be reached. A user namespace cannot make any.
pub(crate) fn open() -> io::Result<Vec<OwnedFd>> {
    let copy = |name| mounts::copy_with(CWD, Path::new("/dev").join(name), sys::NO_SUID);
    NODES.into_iter().map(copy).collect()
}

/// Makes `/dev` in `root`. Over a root file system of somebody else's it is a directory of
/// `stage`: what is in that `/dev` is not ours to fill, and nothing but `stage` is to be written.
pub(crate) fn show(
    root: BorrowedFd<'_>,
    stage: &OwnedFd,
    separate: bool,
    nodes: Vec<OwnedFd>,
    terminals: Option<OwnedFd>,
) -> io::Result<()> {
    let target = mounts::directory(root, Path::new("dev"))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let devices = if separate {
        mkdirat(stage, "dev", Mode::from_raw_mode(0o755))?;
        let own = mounts::copy(stage.as_fd(), "dev")?;
        mounts::put(&own, target.as_fd())?;
        own
    } else {
        openat(root, "dev", flags, Mode::empty())?
    };
    for (name, node) in NODES.into_iter().zip(nodes) {
        let place = mounts::file(devices.as_fd(), Path::new(name))?;
        mounts::put(node, place.as_fd())?;
    }
    for (target, name) in LINKS {
        symlinkat(target, &devices, name)?;
    }
    mkdirat(&devices, "pts", Mode::from_raw_mode(0o755))?;
    let terminals = terminals.map_or_else(make_terminals, Ok)?;
    mounts::put(terminals, openat(&devices, "pts", flags, Mode::empty())?.as_fd())?;
    // With the sticky bit; where `mkdirat` is not given it, it is set afterwards.
    mkdirat(&devices, "shm", Mode::from_raw_mode(0o1777))?;
    Ok(())
}

/// A file system of terminals of its own. Only a user namespace that has a user 0 can make one.
pub(crate) fn make_terminals() -> io::Result<OwnedFd> {
    let options = [
        ("newinstance", None),
        ("ptmxmode", Some("666")),
        ("mode", Some("620")),
        ("max", Some(TERMINALS)),
    ];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    mounts::make("devpts", &options, attributes)
}
