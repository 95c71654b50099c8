//! What an ordinary user can do for a sandbox from outside.

use std::{
    fs, io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    process::{Command, Stdio},
};

use atoll_launcher::{Extent, Failure, Lent, Step, receive, send};
use rustix::{
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::{Pid, WaitId, WaitIdOptions, getegid, geteuid, waitid},
};

use crate::{
    devices,
    failure::At as _,
    mapped::map,
    sys::{self, Cloned},
};

/// Makes this user the sandbox's only one, `inside`, and gives it a file system for terminals.
pub(crate) fn one(inside: u32, child: Pid) -> Result<OwnedFd, Failure> {
    be(inside, child).at(Step::MapIds, "")?;
    terminals().at(Step::Terminals, "")
}

/// Maps ids this user may have mapped. Who may is known to the host's own programs.
pub(crate) fn lent(lent: &Lent, child: Pid) -> Result<(), Failure> {
    for (program, extents) in lent.programs.iter().zip([&lent.users, &lent.groups]) {
        run(program, child, extents).at(Step::MapIds, program)?;
    }
    Ok(())
}

fn run(program: &Path, child: Pid, extents: &[Extent]) -> io::Result<()> {
    let mut command = Command::new(program);
    command.arg(child.as_raw_nonzero().to_string()).env_clear();
    for Extent { inside, outside } in extents {
        command.args([inside.to_string(), outside.to_string(), "1".to_owned()]);
    }
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if quiet.status()?.success() { Ok(()) } else { Err(rustix::io::Errno::PERM.into()) }
}

/// Who maps its own group must give up changing groups first.
fn be(inside: u32, child: Pid) -> io::Result<()> {
    fs::write(format!("/proc/{}/setgroups", child.as_raw_nonzero()), "deny")?;
    let line = |outside| format!("{inside} {outside} 1\n");
    map(child, &line(geteuid().as_raw()), &line(getegid().as_raw()))
}

/// Terminals, made where this user is number 0: the sandbox has nobody of that number, and the
/// kernel makes no terminals without.
fn terminals() -> io::Result<OwnedFd> {
    let (here, there) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match sys::clone(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)? {
        Cloned::Child => {
            drop(here);
            // Waits until it is somebody.
            let made = receive::<()>(there.as_fd()).and_then(|_| devices::make_terminals());
            let _ = made.and_then(|made| send(there.as_fd(), &(), &[made.as_fd()]));
            sys::exit()
        }
        Cloned::Parent(pid, pidfd) => {
            drop(there);
            let made = be(0, pid)
                .and_then(|()| send(here.as_fd(), &(), &[]))
                .and_then(|()| receive::<()>(here.as_fd()));
            drop(here);
            waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)?;
            made?
                .and_then(|((), mut made)| made.pop())
                .ok_or_else(|| rustix::io::Errno::PERM.into())
        }
    }
}
