//! Making processes, their signals and their descriptors.
#![expect(unsafe_code, reason = "fork, execve and signal masks have no safe wrapper")]

use std::{
    ffi::CString,
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
    ptr,
};

use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

/// Which side of a [`fork`] this is.
pub(crate) enum Fork {
    Child,
    Parent(Pid),
}

/// Splits this process in two.
///
/// Only a process of one thread may call it, so that the child can allocate and take locks.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the caller has one thread, so no lock is held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        pid => Pid::from_raw(pid)
            .filter(|pid| pid.as_raw_nonzero().get() > 0)
            .map(Fork::Parent)
            .ok_or_else(io::Error::last_os_error),
    }
}

/// The kernel's `struct clone_args`, up to the numbers of the new process.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
}

/// [`fork`]s, and has the child be number `number` of this pid namespace.
pub(crate) fn fork_as(number: i32) -> io::Result<Fork> {
    let arguments = CloneArguments {
        exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
        set_tid: (&raw const number).addr() as u64,
        set_tid_size: 1,
        ..CloneArguments::default()
    };
    let size = size_of::<CloneArguments>();
    // SAFETY: the structure is the kernel's and what it points to lives over the call; with no
    // stack and no shared memory this is `fork`, and the caller has one thread.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) } {
        0 => Ok(Fork::Child),
        pid => i32::try_from(pid)
            .ok()
            .filter(|pid| *pid > 0)
            .and_then(Pid::from_raw)
            .map(Fork::Parent)
            .ok_or_else(io::Error::last_os_error),
    }
}

/// Ends this process without running what its parent would run at its own end.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: always sound; it does not return.
    unsafe { libc::_exit(code) }
}

/// Takes over a descriptor this process was started with, and hides it from programs to come.
pub(crate) fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl changes no memory; a number that is no descriptor is an error.
    if fd < 0 || unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is open, and whoever started this program said that it is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes descriptor number `at` another name of `fd`, kept over `execve` or not.
///
/// Only for a child on its way to [`execute`], which owns every number it names.
pub(crate) fn install_at(fd: BorrowedFd<'_>, at: RawFd, kept: bool) -> io::Result<()> {
    let flags = if kept { 0 } else { libc::O_CLOEXEC };
    // SAFETY: the caller gave up what `at` was; no memory is involved.
    let result = unsafe {
        if fd.as_raw_fd() == at {
            libc::fcntl(at, libc::F_SETFD, if kept { 0 } else { libc::FD_CLOEXEC })
        } else {
            libc::dup3(fd.as_raw_fd(), at, flags)
        }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A descriptor that [`install_at`] put at this number.
pub(crate) fn borrow(at: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the caller installed it there and keeps it until it ends in exec or exit.
    unsafe { BorrowedFd::borrow_raw(at) }
}

/// Lets the runtime watch a descriptor that does not block.
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: it owns its descriptor and names the same one as long as it lives.
    Ok(unsafe { AsyncFd::register(fd) }?)
}

/// Closes every descriptor from `first` on.
///
/// Only for a child on its way to [`execute`]: it forgets the owners of those descriptors.
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    // Not `u32::MAX`, which gVisor takes for -1. No descriptor has a larger number than this.
    // SAFETY: the caller never uses or drops an owner of these again; it ends in exec or exit.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, i32::MAX, 0) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::ENOSYS) {
        return Err(error);
    }
    for fd in first..65536 {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// Replaces this process by the first of `candidates` that can be run; returns why none could.
pub(crate) fn execute(candidates: &[CString], argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| {
        strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    let mut refused = None;
    for candidate in candidates {
        // SAFETY: all strings end in NUL and both arrays in a null pointer, and all outlive it.
        unsafe { libc::execve(candidate.as_ptr(), argv.as_ptr(), env.as_ptr()) };
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // As shells do: look on, and if nothing better comes up, tell of what was refused.
            Some(libc::EACCES) => refused = Some(error),
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            _ => return error,
        }
    }
    refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

/// Ignores every signal that can be ignored, except those in `but`; children too, if that is
/// wanted, so that they need not be waited for.
pub(crate) fn ignore_signals(but: &[i32]) {
    for signal in 1..=64 {
        if !but.contains(&signal) {
            // SAFETY: no handler is installed; refusal (KILL, STOP, libc's own) is harmless.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
}

/// Gives every signal its default action and blocks none.
pub(crate) fn reset_signals() -> io::Result<()> {
    // The kernel's `struct sigaction` and a set of signals, both all zero.
    let default = [0_u64; 4];
    let none = 0_u64;
    let size = size_of_val(&none);
    // Not through libc, which keeps some signals from us, whatever was inherited for them.
    for signal in 1..=64 {
        // SAFETY: the structure is as long as the kernel's; refusal (KILL, STOP) is harmless.
        unsafe {
            let null = ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), null, size);
        }
    }
    // SAFETY: the set lives over the call.
    let result = unsafe {
        let (how, null) = (libc::SIG_SETMASK, ptr::null_mut::<u64>());
        libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const none, null, size)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A descriptor that is readable when a child has ended. The signal is blocked from now on.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised before it is used; the descriptor is new and ours.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Sends any signal, by number, to a child that has not been waited for.
pub(crate) fn send_signal(pid: Pid, signal: i32) -> io::Result<()> {
    // SAFETY: changes no memory; a number that is no signal is an error.
    let result = unsafe { libc::kill(pid.as_raw_nonzero().get(), signal) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
