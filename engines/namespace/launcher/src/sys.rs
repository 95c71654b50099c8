//! The system calls no library has a safe function for.

#![expect(unsafe_code, reason = "raw system calls")]

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
};

use rustix::process::Pid;

pub(crate) const READ_ONLY: u64 = 1;
pub(crate) const NO_SUID: u64 = 2;
pub(crate) const NO_DEV: u64 = 4;
const ID_MAP: u64 = 0x0010_0000;
const RECURSIVE: libc::c_uint = 0x8000;

/// `struct mount_attr`.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    users: u64,
}

/// What a new process is: the parent sees it, with a pidfd; the child sees nothing.
pub(crate) enum Cloned {
    Parent(Pid, OwnedFd),
    Child,
}

/// Forks with these flags. The caller must have one thread only.
pub(crate) fn clone(flags: libc::c_int) -> io::Result<Cloned> {
    let flags = flags | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut pidfd: RawFd = -1;
    // SAFETY: with no stack and no shared memory this is `fork`; this process has one thread, so
    // nothing is locked in the child. `pidfd` outlives the call.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone, i64::from(flags), 0_i64, &raw mut pidfd, 0_i64, 0_i64)
    };
    if pid == 0 {
        return Ok(Cloned::Child);
    }
    let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Ok(Cloned::Parent(pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// Sets attributes of a mount and everything under it, makes it private, and shows it through
/// the id map of `users` if there is one.
pub(crate) fn set_mount(
    mount: BorrowedFd<'_>,
    set: u64,
    users: Option<BorrowedFd<'_>>,
    recursive: bool,
) -> io::Result<()> {
    let attributes = MountAttr {
        set: set | users.map_or(0, |_| ID_MAP),
        clear: 0,
        propagation: libc::MS_PRIVATE,
        users: users.map_or(0, |fd| u64::try_from(fd.as_raw_fd()).unwrap_or(0)),
    };
    let flags = libc::AT_EMPTY_PATH.cast_unsigned() | if recursive { RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string and the structure lives through the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes `fd` also descriptor `number`, which programs started from here keep.
pub(crate) fn place(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    // SAFETY: only numbers that no owner in this process holds are given.
    let result = unsafe { libc::dup2(fd.as_raw_fd(), number) };
    if result == number { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Becomes another program, with these arguments and no environment.
pub(crate) fn execute(program: BorrowedFd<'_>, name: &CStr) -> io::Error {
    let arguments = [name.as_ptr(), std::ptr::null()];
    let environment: [*const libc::c_char; 1] = [std::ptr::null()];
    // SAFETY: both lists end in null and live through the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}

/// Gives every signal its default meaning again, as a new program expects, and blocks none.
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: no handler of this process is replaced by another function.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an all-zero set is the empty set, and is only read.
    unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Switches the loopback interface of this network namespace on.
pub(crate) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: an all-zero request is valid; the name is shorter than its field.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or_default();
    // SAFETY: the request lives through the call and is of the type this operation takes.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a control group namespace that begins where this process is, and enters it.
pub(crate) fn unshare_groups() -> io::Result<()> {
    // SAFETY: changes how this process sees control groups and no memory.
    let result = unsafe { libc::unshare(libc::CLONE_NEWCGROUP) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends this process at once.
pub(crate) fn exit() -> ! {
    // SAFETY: takes no pointer and does not return.
    unsafe { libc::_exit(1) }
}
