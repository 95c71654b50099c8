//! The launcher outside: what the sandbox's first process cannot do itself.

use std::{
    fs, io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use atoll_launcher::{Failure, Ids, Plan, Report, Step, Weakness, receive, send};
use rustix::{
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::{Pid, Signal, pidfd_send_signal},
    thread::{CapabilitiesSecureBits, set_capabilities_secure_bits, set_thread_res_uid},
};

use crate::{
    child,
    failure::At as _,
    mapped, ordinary,
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
    let Ids::Range(first) = plan.ids else {
        return sys::clone(flags).at(Step::Clone, "");
    };
    set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP).at(Step::Clone, "")?;
    let root = rustix::process::getuid();
    let owner = rustix::process::Uid::from_raw(first);
    set_thread_res_uid(None, owner, None).at(Step::Clone, "")?;
    let cloned = sys::clone(flags).at(Step::Clone, "")?;
    if matches!(cloned, Cloned::Parent(..)) {
        set_thread_res_uid(None, root, None).at(Step::Clone, "")?;
    }
    Ok(cloned)
}

/// Does for the child what it cannot do itself, then lets it go on.
fn prepare(plan: &Plan, child: Pid, socket: &OwnedFd) -> Result<(), Failure> {
    let (covers, trees) = match &plan.ids {
        Ids::Range(first) => mapped::prepare(plan, *first, child)?,
        Ids::One(inside) => (Vec::new(), vec![ordinary::one(*inside, child)?]),
        Ids::Lent(lent) => {
            ordinary::lent(lent, child)?;
            (Vec::new(), Vec::new())
        }
    };
    let trees: Vec<_> = trees.iter().map(OwnedFd::as_fd).collect();
    send(socket.as_fd(), &covers, &trees).at(Step::MapMount, "")
}
