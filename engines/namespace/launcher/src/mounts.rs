//! Mounts by descriptor: made detached, given their attributes, and only then put in place.
//!
//! Targets are found by `openat2` inside the new root, so that no link in a root file system
//! somebody else made leads out of it.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
    },
};

use crate::sys;

/// A copy of what is mounted at `path`, or at `at` itself if that is empty, and under it, to be put
/// elsewhere.
pub(crate) fn copy(at: BorrowedFd<'_>, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(at, path.as_ref(), flags)?)
}

/// [`copy`], with these attributes of [`sys`] on all of it.
pub(crate) fn copy_with(
    at: BorrowedFd<'_>,
    path: impl AsRef<Path>,
    attributes: u64,
) -> io::Result<OwnedFd> {
    let tree = copy(at, path)?;
    sys::set_mount(tree.as_fd(), attributes, None, true)?;
    Ok(tree)
}

/// A new file system, mounted nowhere yet. An option without a value is a flag.
pub(crate) fn make(
    kind: &str,
    options: &[(&str, Option<&str>)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        match value {
            Some(value) => fsconfig_set_string(context.as_fd(), *name, *value)?,
            None => fsconfig_set_flag(context.as_fd(), *name)?,
        }
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Puts a mount on what `target` is.
pub(crate) fn put(mount: impl AsFd, target: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount.as_fd(), "", target, "", flags)?)
}

/// Puts a mount on a path of this process.
pub(crate) fn put_at(mount: impl AsFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(mount.as_fd(), "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Finds `path` inside `root`, whatever links say.
pub(crate) fn find(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let inside = path.strip_prefix("/").unwrap_or(path);
    let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    openat2(root, inside, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Finds the directory `path` inside `root`, and makes it and those above it if need be.
pub(crate) fn directory(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    match find(root, path, flags) {
        Err(Errno::NOENT) => {}
        found => return Ok(found?),
    }
    let mut sofar = PathBuf::new();
    let mut at = find(root, Path::new("."), flags)?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        sofar.push(name);
        at = match find(root, &sofar, flags) {
            Err(Errno::NOENT) => {
                mkdirat(&at, name, Mode::from_raw_mode(0o755))?;
                find(root, &sofar, flags)?
            }
            found => found?,
        };
    }
    Ok(at)
}

/// Finds the file `path` inside `root`, and makes it, empty, if need be.
pub(crate) fn file(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    match find(root, path, OFlags::PATH) {
        Err(Errno::NOENT) => {}
        found => return Ok(found?),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let parent = directory(root, parent)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644))?)
}
