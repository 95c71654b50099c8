//! Names for what the kernel answers, as they stand in snapshots.

use crate::sys::{Answer, Outcome};

/// `ok`, the name of an errno or of a signal, `exit` or `stop`.
pub(crate) fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Answered(answer) => self::answer(answer),
        Outcome::Killed(number) => signal(number),
        Outcome::Exited => "exit".to_owned(),
        Outcome::Stopped => "stop".to_owned(),
    }
}

pub(crate) fn answer(answer: Answer) -> String {
    match answer {
        Ok(_) => "ok".to_owned(),
        Err(number) => errno(number),
    }
}

pub(crate) fn io<T>(result: std::io::Result<T>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.raw_os_error().map_or_else(|| error.to_string(), errno),
    }
}

pub(crate) fn errno(number: i32) -> String {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EINTR, "EINTR"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::E2BIG, "E2BIG"),
        (libc::EBADF, "EBADF"),
        (libc::ECHILD, "ECHILD"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::EXDEV, "EXDEV"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::EMFILE, "EMFILE"),
        (libc::EFBIG, "EFBIG"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::ESPIPE, "ESPIPE"),
        (libc::EROFS, "EROFS"),
        (libc::EPIPE, "EPIPE"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ELOOP, "ELOOP"),
        (libc::ENOTSOCK, "ENOTSOCK"),
        (libc::EPROTOTYPE, "EPROTOTYPE"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
        (libc::ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::EADDRINUSE, "EADDRINUSE"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::EINPROGRESS, "EINPROGRESS"),
        (libc::EDQUOT, "EDQUOT"),
        (libc::ENOKEY, "ENOKEY"),
    ];
    known
        .iter()
        .find(|(value, _)| *value == number)
        .map_or_else(|| format!("errno {number}"), |(_, name)| (*name).to_owned())
}

fn signal(number: i32) -> String {
    match number {
        libc::SIGSYS => "SIGSYS".to_owned(),
        libc::SIGSEGV => "SIGSEGV".to_owned(),
        libc::SIGKILL => "SIGKILL".to_owned(),
        libc::SIGALRM => "SIGALRM".to_owned(),
        number => format!("signal {number}"),
    }
}
