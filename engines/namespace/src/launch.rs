//! Runs the launcher.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    process::{Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use atoll_engine::{Error, ErrorKind};
use atoll_launcher::{Failure, Plan, Report, Step, receive, send};
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    io::Errno,
    net::{
        AddressFamily, SocketFlags, SocketType, socketpair,
        sockopt::{Timeout, set_socket_timeout},
    },
};

use crate::process;

static PROGRAM: &[u8] = include_bytes!(env!("ATOLL_LAUNCHER"));

/// How long the launcher may take; only a host in trouble needs more than a fraction of it.
const PATIENCE: Duration = Duration::from_mins(1);

/// Why there is no sandbox.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The launcher said what it could not do.
    Failed(Failure),
    /// The launcher did not answer.
    Silent(io::Error),
}

/// Makes the planned sandbox: its first process's number, and a pidfd of it.
pub(crate) fn launch(
    plan: &Plan,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(i32, OwnedFd), Refusal> {
    let (report, mut descriptors) = run(plan, descriptors).map_err(Refusal::Silent)?;
    match report {
        Report::Running { pid } => {
            let missing = || Refusal::Silent(io::ErrorKind::UnexpectedEof.into());
            Ok((pid, descriptors.pop().ok_or_else(missing)?))
        }
        Report::Failed(failure) => {
            if let Some(dead) = descriptors.pop() {
                let _ = process::end(&dead, PATIENCE);
                process::reap(&dead);
            }
            Err(Refusal::Failed(failure))
        }
    }
}

fn run(plan: &Plan, descriptors: &[BorrowedFd<'_>]) -> io::Result<(Report, Vec<OwnedFd>)> {
    let program = program()?;
    let (here, there) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&here, Timeout::Recv, Some(PATIENCE))?;
    let mut child = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(there))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let answer = send(here.as_fd(), plan, descriptors).and_then(|()| receive(here.as_fd()));
    if answer.is_err() {
        let _ = child.kill();
    }
    child.wait()?;
    answer?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// The launcher in memory, sealed.
fn program() -> io::Result<&'static OwnedFd> {
    static SEALED: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(sealed) = SEALED.get() {
        return Ok(sealed);
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 know no such flag and make every such file executable.
    let descriptor = match memfd_create("atoll-launcher", flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => memfd_create("atoll-launcher", flags)?,
        made => made?,
    };
    let mut file = File::from(descriptor);
    file.write_all(PROGRAM)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(SEALED.get_or_init(|| file.into()))
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Failed(failure) => explained(&failure),
            Refusal::Silent(error) => Self::internal("the launcher did not answer").because(error),
        }
    }
}

/// Says whose fault it is. What the message leaves out, for it may be a host's path, is in the
/// source.
fn explained(failure: &Failure) -> Error {
    let cause = io::Error::from_raw_os_error(failure.errno);
    let (kind, message) = match failure.step {
        Step::MapMount => (
            ErrorKind::Unsupported,
            "the file system of a directory to be shown has no id-mapped mounts".to_owned(),
        ),
        Step::Bind => {
            (ErrorKind::Invalid, format!("a directory cannot be shown where it should be: {cause}"))
        }
        step => (ErrorKind::Internal, format!("the sandbox could not be made ({step:?}): {cause}")),
    };
    Error::new(kind, message).because(io::Error::new(
        cause.kind(),
        format!("{:?} {}: {cause}", failure.step, failure.what),
    ))
}
