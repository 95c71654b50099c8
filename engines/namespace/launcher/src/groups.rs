//! A control group namespace whose root is the guests' own groups.
//!
//! A namespace begins where its maker is. Were that the agent, which is beside its guests and in
//! fewer hierarchies, `/proc/self/cgroup` would tell every guest the names of its groups on the
//! host. So somebody goes where the guests will be, makes the namespace there, and is gone.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use atoll_launcher::{receive, send};
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::write,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::{WaitId, WaitIdOptions, waitid},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::sys::{self, Cloned};

/// Puts this process, which stays in its groups, into a namespace made at `doors`. The host's
/// `/proc` must still be there.
pub(crate) fn hide(doors: &[OwnedFd]) -> io::Result<()> {
    let (here, there) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match sys::clone(0)? {
        Cloned::Child => {
            drop(here);
            let _ = make(doors).and_then(|made| send(there.as_fd(), &(), &[made.as_fd()]));
            sys::exit()
        }
        Cloned::Parent(_, pidfd) => {
            drop(there);
            let made = receive::<()>(here.as_fd())?.and_then(|((), mut made)| made.pop());
            waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)?;
            let made = made.ok_or(io::ErrorKind::PermissionDenied)?;
            Ok(move_into_link_name_space(made.as_fd(), Some(LinkNameSpaceType::ControlGroup))?)
        }
    }
}

fn make(doors: &[OwnedFd]) -> io::Result<OwnedFd> {
    for door in doors {
        write(door, b"0")?;
    }
    sys::unshare_groups()?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(openat(CWD, "/proc/self/ns/cgroup", flags, Mode::empty())?)
}
