//! The launcher outside: what needs the host's root.

use std::{
    fs, io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use atoll_launcher::{Bind, Failure, IDS, Plan, Report, Step, Weakness, receive, send};
use rustix::{
    fs::{Mode, OFlags, ResolveFlags, openat2},
    mount::{OpenTreeFlags, open_tree},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
    thread::{CapabilitiesSecureBits, set_capabilities_secure_bits, set_thread_res_uid},
};

use crate::{
    child,
    failure::At as _,
    sys::{self, Cloned},
};

/// Takes a plan from `socket`, does it and reports. Fails only if nobody listens.
pub(crate) fn launch(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut init = None;
    let made = match receive::<Plan>(socket) {
        Ok(None) => return Ok(()),
        Ok(Some((plan, descriptors))) => run(&plan, descriptors, &mut init),
        Err(error) => Err(error).at(Step::ReadPlan, ""),
    };
    let report = match made {
        Ok(pid) => Report::Running { pid: pid.as_raw_nonzero().get() },
        Err(failure) => Report::Failed(failure),
    };
    let init: Vec<_> = init.iter().map(OwnedFd::as_fd).collect();
    send(socket, &report, &init)
}

/// Makes the sandbox. Its first process, in `init` as soon as there is one, is dead if this fails.
fn run(
    plan: &Plan,
    mut descriptors: Vec<OwnedFd>,
    init: &mut Option<OwnedFd>,
) -> Result<Pid, Failure> {
    let own_doors = descriptors.len().saturating_sub(plan.own_doors);
    for door in descriptors.split_off(own_doors) {
        rustix::io::write(door, b"0").at(Step::JoinGroups, "")?;
    }
    be_killed_as_any_other().at(Step::Identity, "")?;
    let (here, there) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .at(Step::Clone, "")?;
    match clone(plan)? {
        Cloned::Child => {
            drop(here);
            child::become_agent(plan, descriptors, there)
        }
        Cloned::Parent(pid, pidfd) => {
            let pidfd = init.insert(pidfd);
            drop((there, descriptors));
            let made = prepare(plan, pid, &here).and_then(|()| told(&here));
            if made.is_err() {
                let _ = pidfd_send_signal(pidfd, Signal::KILL);
            }
            made.map(|()| pid)
        }
    }
}

/// A daemon may be spared when the host runs out of memory. Its sandboxes are not.
fn be_killed_as_any_other() -> io::Result<()> {
    const PATH: &str = "/proc/self/oom_score_adj";
    if fs::read_to_string(PATH)?.starts_with('-') { fs::write(PATH, "0") } else { Ok(()) }
}

/// Waits until the child is the agent, or for what kept it from that.
fn told(socket: &OwnedFd) -> Result<(), Failure> {
    match receive::<Failure>(socket.as_fd()) {
        // Closed, because it became another program.
        Ok(None) => Ok(()),
        Ok(Some((failure, _))) => Err(failure),
        Err(error) => Err(error).at(Step::Start, ""),
    }
}

/// Clones the sandbox's first process.
///
/// The user namespace belongs to whoever makes it, and the kernel counts what is used inside
/// (watches, queues, nested namespaces) against that user on the host as well. So it is made as
/// the sandbox's own root: were it the host's, one sandbox could use up what all of them and the
/// host share. The capabilities stay, for hosts that let only privileged users make one.
///
/// It is a sibling, not a child: this program is gone in a moment, and who started it can reap.
fn clone(plan: &Plan) -> Result<Cloned, Failure> {
    let mut flags = libc::CLONE_PARENT
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    if plan.is_weak(Weakness::Network) {
        flags &= !libc::CLONE_NEWNET;
    }
    if plan.is_weak(Weakness::Ipc) {
        flags &= !libc::CLONE_NEWIPC;
    }
    set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP).at(Step::Clone, "")?;
    let root = rustix::process::getuid();
    let owner = rustix::process::Uid::from_raw(plan.ids);
    set_thread_res_uid(None, owner, None).at(Step::Clone, "")?;
    let cloned = sys::clone(flags).at(Step::Clone, "")?;
    if matches!(cloned, Cloned::Parent(..)) {
        set_thread_res_uid(None, root, None).at(Step::Clone, "")?;
    }
    Ok(cloned)
}

/// Does for the child what it cannot do itself, then lets it go on.
fn prepare(plan: &Plan, child: Pid, socket: &OwnedFd) -> Result<(), Failure> {
    let line = format!("0 {} {IDS}\n", plan.ids);
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
            let tree = owned(bind, plan.ids + user)?;
            let hidden = hidden(bind, &tree).at(Step::Bind, &bind.source)?;
            covers.push(hidden.len());
            trees.push(tree);
            trees.extend(hidden);
        }
    }
    let trees: Vec<_> = trees.iter().map(OwnedFd::as_fd).collect();
    send(socket.as_fd(), &covers, &trees).at(Step::MapMount, "")
}

fn cloned(path: &std::path::Path) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(rustix::fs::CWD, path, flags)
}

/// A directory that guests may be able to write to: since it was checked, any part of its path may
/// have become a link to somewhere else, and none is followed.
fn shared(path: &std::path::Path) -> rustix::io::Result<OwnedFd> {
    let directory = openat2(
        rustix::fs::CWD,
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(&directory, "", flags)
}

/// The host's directory of `bind`, as a mount on which its owner is the guest's `user`.
fn owned(bind: &Bind, user: u32) -> Result<OwnedFd, Failure> {
    let tree = shared(&bind.source).at(Step::Bind, &bind.source)?;
    let attributes = sys::NO_SUID | sys::NO_DEV | if bind.writable { 0 } else { sys::READ_ONLY };
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

/// What is to be covered of a mount, found by who can find it wherever it lies. What is not there
/// needs no cover.
fn hidden(bind: &Bind, tree: &OwnedFd) -> rustix::io::Result<Vec<OwnedFd>> {
    let find = |path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(tree, path, flags, Mode::empty(), resolve) {
            Err(rustix::io::Errno::NOENT) => None,
            found => Some(found),
        }
    };
    bind.hidden.iter().filter_map(find).collect()
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

fn map(child: Pid, users: &str, groups: &str) -> io::Result<()> {
    let pid = child.as_raw_nonzero();
    fs::write(format!("/proc/{pid}/uid_map"), users)?;
    fs::write(format!("/proc/{pid}/gid_map"), groups)
}

fn users_of(child: Pid) -> io::Result<OwnedFd> {
    let pid = child.as_raw_nonzero();
    Ok(fs::File::open(format!("/proc/{pid}/ns/user"))?.into())
}
