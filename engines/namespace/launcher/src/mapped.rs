//! What needs the host's root: a range of ids, and the host's directories shown through them.

use std::{
    fs, io,
    os::fd::{AsFd as _, OwnedFd},
};

use atoll_launcher::{Bind, Failure, IDS, Plan, Step};
use rustix::{
    mount::{OpenTreeFlags, open_tree},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::{Pid, WaitId, WaitIdOptions, waitid},
};

use crate::{
    failure::At as _,
    shared,
    sys::{self, Cloned},
};

/// Maps the ids and opens what is shown through them: the lower layer if there is one, then each
/// directory shown as a user's, followed by what is to be covered of it. Also tells how many those
/// are of each.
pub(crate) fn prepare(
    plan: &Plan,
    first: u32,
    child: Pid,
) -> Result<(Vec<usize>, Vec<OwnedFd>), Failure> {
    let line = format!("0 {first} {IDS}\n");
    map(child, &line, &line).at(Step::MapIds, "")?;
    let (mut trees, mut covers) = (Vec::new(), Vec::new());
    if let Some(lower) = &plan.lower {
        let users = users_of(child).at(Step::MapMount, lower)?;
        let tree = cloned(lower).at(Step::Bind, lower)?;
        sys::set_mount(
            tree.as_fd(),
            sys::READ_ONLY | sys::NO_SUID | sys::NO_DEV,
            Some(users.as_fd()),
            true,
        )
        .at(Step::MapMount, lower)?;
        trees.push(tree);
    }
    for bind in &plan.binds {
        if let Some(user) = bind.as_user {
            let tree = owned(bind, first + user)?;
            let hidden = shared::hidden(bind, &tree).at(Step::Bind, &bind.source)?;
            covers.push(hidden.len());
            trees.push(tree);
            trees.extend(hidden);
        }
    }
    Ok((covers, trees))
}

fn cloned(path: &std::path::Path) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(rustix::fs::CWD, path, flags)
}

/// The host's directory of `bind`, as a mount on which its owner is the guest's `user`.
fn owned(bind: &Bind, user: u32) -> Result<OwnedFd, Failure> {
    let tree = shared::open(&bind.source).at(Step::Bind, &bind.source)?;
    let attributes = shared::attributes(bind);
    // Of what was opened, not of what was there when it was checked.
    let found = rustix::fs::fstat(&tree).at(Step::Bind, &bind.source)?;
    let users = users(found.st_uid, found.st_gid, user).at(Step::MapMount, &bind.source)?;
    match sys::set_mount(tree.as_fd(), attributes, Some(users.as_fd()), true) {
        // A file system without id maps: what others may read is still there to be read.
        Err(error) if !bind.writable && error.raw_os_error() == Some(libc::EINVAL) => {
            sys::set_mount(tree.as_fd(), attributes, None, true)
        }
        set => set,
    }
    .at(Step::MapMount, &bind.source)?;
    Ok(tree)
}

/// A user namespace that says: this owner and this group of the file system are that user of the
/// host, and nobody else is anybody.
fn users(owner: u32, group: u32, user: u32) -> io::Result<OwnedFd> {
    let (here, there) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match sys::clone(libc::CLONE_NEWUSER)? {
        Cloned::Child => {
            drop(here);
            // Lives until the other end is closed.
            let _ = rustix::io::read(&there, &mut [0; 1]);
            sys::exit()
        }
        Cloned::Parent(pid, pidfd) => {
            drop(there);
            let line = |inside| format!("{inside} {user} 1\n");
            let mapped = map(pid, &line(owner), &line(group));
            let users = mapped.and_then(|()| users_of(pid));
            drop(here);
            waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)?;
            users
        }
    }
}

pub(crate) fn map(child: Pid, users: &str, groups: &str) -> io::Result<()> {
    let pid = child.as_raw_nonzero();
    fs::write(format!("/proc/{pid}/uid_map"), users)?;
    fs::write(format!("/proc/{pid}/gid_map"), groups)
}

fn users_of(child: Pid) -> io::Result<OwnedFd> {
    let pid = child.as_raw_nonzero();
    Ok(fs::File::open(format!("/proc/{pid}/ns/user"))?.into())
}
