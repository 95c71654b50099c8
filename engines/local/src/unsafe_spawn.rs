//! Starting an agent that is on its own: the one place where code runs between fork and exec.

#![expect(unsafe_code, reason = "descriptors get their places between fork and exec")]

use std::{
    fs::File,
    io::{self, Seek as _, Write as _},
    os::{
        fd::{AsRawFd as _, OwnedFd, RawFd},
        unix::{net::UnixListener, process::CommandExt as _},
    },
    path::Path,
    process::{Child, Command, Stdio},
};

use atoll_agent_protocol::message::{BOOT_FD, Boot};
use prost::Message as _;
use rustix::fs::{MemfdFlags, memfd_create};

/// Where the agent finds its listener.
const LISTENER_FD: RawFd = BOOT_FD + 1;

/// Starts an agent with nothing of this process but what it is given: no variable but `mark`, no
/// descriptor but its own two, a session of its own. It takes in what loses its parent below it.
pub(crate) fn spawn(
    boot: Boot,
    listener: &UnixListener,
    directory: &Path,
    mark: (&str, &Path),
) -> io::Result<Child> {
    // Copies above the places that are taken, so that none is put over another.
    let program = above(atoll_agent_client::agent_memfd()?)?;
    let boot = above(boot_file(&Boot { listener_fd: LISTENER_FD, ..boot })?)?;
    let listener = above(listener)?;
    let (boot_fd, listener_fd) = (boot.as_raw_fd(), listener.as_raw_fd());

    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command
        .arg0("atoll-agent")
        .env_clear()
        .env(mark.0, mark.1)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: between fork and exec only system calls are made, on descriptors that live until
    // `spawn` returns; no memory is allocated and no lock is taken.
    unsafe {
        command.pre_exec(move || {
            check(libc::setsid())?;
            check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))?;
            check(libc::dup2(boot_fd, BOOT_FD))?;
            check(libc::dup2(listener_fd, LISTENER_FD))?;
            Ok(())
        });
    }
    let child = command.spawn();
    drop((program, boot, listener));
    child
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A file in memory that is read from its beginning to its end.
fn boot_file(boot: &Boot) -> io::Result<File> {
    let mut file = File::from(memfd_create("boot", MemfdFlags::CLOEXEC)?);
    file.write_all(&boot.encode_to_vec())?;
    file.rewind()?;
    Ok(file)
}

fn above(descriptor: impl std::os::fd::AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, LISTENER_FD + 1)?)
}
