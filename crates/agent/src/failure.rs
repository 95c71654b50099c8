//! What the agent tells a host when it cannot do something. Never a path of its own.

use std::io;

use atoll_agent_protocol::message::{Failure, FailureKind};

use crate::launch::Step;

pub(crate) fn failure(kind: FailureKind, message: impl Into<String>) -> Failure {
    Failure { kind: kind.into(), message: message.into() }
}

pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    failure(FailureKind::Invalid, message)
}

pub(crate) fn not_found(message: impl Into<String>) -> Failure {
    failure(FailureKind::NotFound, message)
}

pub(crate) fn internal(message: impl Into<String>) -> Failure {
    failure(FailureKind::Internal, message)
}

pub(crate) fn exhausted(message: impl Into<String>) -> Failure {
    failure(FailureKind::Exhausted, message)
}

/// As much of a name as belongs in a message.
pub(crate) fn shown(name: &str) -> &str {
    let mut end = name.len().min(200);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Why a program was not started. `directory` is as the host wrote it.
pub(crate) fn of_start(program: &str, directory: &str, step: Step, cause: &io::Error) -> Failure {
    let code = cause.raw_os_error().unwrap_or_default();
    let why = describe(cause);
    let (program, directory) = (shown(program), shown(directory));
    match (step, code) {
        (_, libc::EAGAIN | libc::ENOMEM) => exhausted(format!("no room for a process: {why}")),
        (Step::Directory, _) => invalid(format!("working directory {directory}: {why}")),
        (Step::Execute, libc::ENOENT) => {
            not_found(format!("{program}: no such program, or its interpreter is missing"))
        }
        (Step::Execute, libc::ENOEXEC) => {
            invalid(format!("{program}: not a program; a script needs a #! line"))
        }
        (Step::Execute, libc::E2BIG) => invalid("the arguments and variables are too long"),
        (Step::Execute, libc::EIO) => internal(format!("{program}: {why}")),
        (Step::Execute, _) => invalid(format!("{program}: cannot be run: {why}")),
        _ => internal(format!("the process could not be sealed ({step:?}): {why}")),
    }
}

/// Why a process could not be handed over to be started, perhaps with a terminal.
pub(crate) fn of_launch(terminal: bool, cause: &io::Error) -> Failure {
    match cause.raw_os_error().unwrap_or_default() {
        libc::ENOSPC if terminal => exhausted("no more terminals can be opened in this sandbox"),
        libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EACCES if terminal => {
            failure(FailureKind::Unsupported, "there is no `terminal` to be had in this sandbox")
        }
        _ => exhausted(format!("no process: {}", describe(cause))),
    }
}

/// Why something could not be done with a file. `what` names it as the host did.
pub(crate) fn of_file(what: &str, cause: &io::Error) -> Failure {
    let kind = kind_of(cause.raw_os_error().unwrap_or_default());
    failure(kind, format!("{}: {}", shown(what), describe(cause)))
}

/// What a host can do about an error of the kernel's.
pub(crate) fn kind_of(code: i32) -> FailureKind {
    match code {
        libc::ENOENT => FailureKind::NotFound,
        libc::EACCES | libc::EPERM | libc::EROFS => FailureKind::Denied,
        libc::EEXIST | libc::ENOTEMPTY => FailureKind::AlreadyExists,
        libc::ENOSPC
        | libc::EDQUOT
        | libc::EFBIG
        | libc::EMFILE
        | libc::ENFILE
        | libc::ENOMEM
        | libc::EMLINK => FailureKind::Exhausted,
        libc::EISDIR
        | libc::ENOTDIR
        | libc::EINVAL
        | libc::ELOOP
        | libc::ENAMETOOLONG
        | libc::EBUSY
        | libc::ETXTBSY
        | libc::ENXIO
        // A lease of the guest's own.
        | libc::EAGAIN
        | libc::ENODEV => FailureKind::Invalid,
        libc::EXDEV | libc::EOPNOTSUPP => FailureKind::Unsupported,
        _ => FailureKind::Internal,
    }
}

/// Why a connection to a program of the sandbox broke.
pub(crate) fn failure_of_connection(cause: &io::Error) -> Failure {
    failure(FailureKind::NotFound, format!("the connection to the port broke: {}", describe(cause)))
}

/// The kernel's words for it, without the number.
fn describe(cause: &io::Error) -> String {
    let text = cause.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}
