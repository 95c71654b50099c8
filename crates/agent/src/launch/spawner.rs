//! The process that forks keepers, and does nothing else.

use std::{
    collections::HashSet,
    io::IoSliceMut,
    mem::MaybeUninit,
    os::fd::{AsFd as _, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, read},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::{Pid, WaitOptions, getpid, set_child_subreaper, setsid, wait},
};

use super::{
    guest::{Guests, Step},
    keeper, numbers, tree,
};
use crate::sys::{self, Fork};

/// What the agent sends for each command, as descriptors in this order.
pub(crate) struct Parcel {
    /// The keeper's end of its connection to the agent.
    pub(crate) socket: OwnedFd,
    /// A [`Job`](super::Job).
    pub(crate) job: OwnedFd,
    /// Where it is told why the program could not be started; closed once it runs.
    pub(crate) error: OwnedFd,
    pub(crate) stdio: [OwnedFd; 3],
}

/// How many descriptors a [`Parcel`] has.
pub(crate) const PARCEL: usize = 6;

/// Forks a keeper for each parcel until the agent is gone; never returns.
pub(crate) fn run(socket: OwnedFd, guests: &Guests) -> ! {
    let _ = setsid();
    sys::ignore_signals(&[libc::SIGCHLD]);
    // Should a keeper be killed, what it kept comes here and not to the host.
    let ready = set_child_subreaper(Some(getpid())).is_ok() && guests.confine().is_ok();
    let Ok(children) = sys::child_signals() else { sys::exit(1) };
    if !ready {
        sys::exit(1);
    }
    let mut keepers = HashSet::new();
    loop {
        let mut ready =
            [PollFd::new(&socket, PollFlags::IN), PollFd::new(&children, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => sys::exit(1),
        }
        let asked = !ready[0].revents().is_empty();
        if !ready[1].revents().is_empty() {
            let mut buffer = [0; 1024];
            let _ = read(&children, &mut buffer);
            if reap(&mut keepers) {
                let spared = keepers.clone();
                tree::end(&guests.proc, getpid(), &spared, || {
                    reap(&mut keepers);
                    tree::any(&guests.proc, getpid(), &spared)
                });
            }
        }
        if !asked {
            continue;
        }
        let parcel = match receive(&socket) {
            Ok(Some(parcel)) => parcel,
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Ok(None) | Err(_) => sys::exit(0),
        };
        match numbers::fork_keeper(guests.own_pids, &keepers) {
            Ok(Fork::Parent(keeper)) => drop(keepers.insert(keeper)),
            Ok(Fork::Child) => {
                // Held here too, the agent would not see this process end.
                drop((socket, children));
                keeper::run(parcel, guests)
            }
            Err(cause) => Step::Fork.tell(&cause, parcel.error.as_fd()),
        }
    }
}

/// Waits for keepers that have ended; says whether one left its processes to us.
fn reap(keepers: &mut HashSet<Pid>) -> bool {
    let mut orphans = false;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                orphans |= keepers.remove(&pid) && status.signaled();
            }
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return orphans,
        }
    }
}

fn receive(socket: &OwnedFd) -> Result<Option<Parcel>, Errno> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PARCEL))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    match <[OwnedFd; PARCEL]>::try_from(fds) {
        Ok([socket, job, error, stdin, stdout, stderr]) => {
            Ok(Some(Parcel { socket, job, error, stdio: [stdin, stdout, stderr] }))
        }
        // Out of descriptors: whoever waits for this command sees its ends closed.
        Err(_) => Err(Errno::AGAIN),
    }
}
