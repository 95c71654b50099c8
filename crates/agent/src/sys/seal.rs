//! Taking rights away.
#![expect(unsafe_code, reason = "seccomp, setfsuid and the bounding set have no safe wrapper")]

use std::io;

use rustix::process::{
    DumpableBehavior, getegid, geteuid, getuid, parent_process_death_signal, set_dumpable_behavior,
    set_parent_process_death_signal,
};

/// Empties the capability bounding set.
pub(crate) fn drop_bounding_set() -> io::Result<()> {
    for capability in 0..64 {
        // SAFETY: changes no memory of this process.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if result < 0 {
            let error = io::Error::last_os_error();
            // The first number that is no capability ends the list.
            return if error.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(error) };
        }
    }
    Ok(())
}

/// Installs a filter, given as the bytes of `struct sock_filter` values.
pub(crate) fn install_seccomp(program: &[u8]) -> io::Result<()> {
    const SIZE: usize = size_of::<libc::sock_filter>();
    let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
    if program.is_empty() || !program.len().is_multiple_of(SIZE) {
        return Err(invalid());
    }
    let mut filters: Vec<libc::sock_filter> = program
        .chunks_exact(SIZE)
        .map(|bytes| libc::sock_filter {
            code: u16::from_le_bytes([bytes[0], bytes[1]]),
            jt: bytes[2],
            jf: bytes[3],
            k: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(filters.len()).map_err(|_| invalid())?,
        filter: filters.as_mut_ptr(),
    };
    // SAFETY: the program and what it points to live until the call returns; it copies them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::c_ulong::from(0_u32),
            &raw const program,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets both ends of a limit. One that cannot be raised stays: it is the tighter.
pub(crate) fn limit(resource: i32, value: u64) -> io::Result<()> {
    match exchange(resource, Some([value, value])) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            let [_, most] = exchange(resource, None)?;
            let tight = most.min(value);
            exchange(resource, Some([tight, tight])).map(drop)
        }
        result => result.map(drop),
    }
}

/// Reads a limit of this process, now and at most, after having set it.
///
/// Not through libc, whose type for the number differs from one to the other.
fn exchange(resource: i32, new: Option<[u64; 2]>) -> io::Result<[u64; 2]> {
    let mut old = [0_u64; 2];
    let new = new.as_ref().map_or(std::ptr::null(), |new| new.as_ptr());
    // SAFETY: both arrays have the layout of the kernel's structure and live over the call.
    let result = unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, new, old.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(old) }
}

/// How many files a process may have open: now, and at most.
pub(crate) fn limits_of_files() -> (u64, u64) {
    let mut current = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives over the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut current) };
    (current.rlim_cur, current.rlim_max)
}

/// Sets how many files this process may have open, as far as that is allowed.
pub(crate) fn raise_limit_of_files(now: u64, most: u64) {
    let wanted = libc::rlimit { rlim_cur: now, rlim_max: most };
    // SAFETY: the structure lives over the call.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const wanted) };
}

/// Makes this one thread touch files as somebody else.
///
/// The thread's other ids stay, so that the somebody can neither signal nor trace it.
pub(crate) fn set_file_system_user(uid: u32, gid: u32) -> io::Result<()> {
    // Both calls answer with the former id, and never tell of an error: asking again does.
    // SAFETY: they change this thread's credentials and no memory.
    let now = unsafe {
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setfsuid, uid);
        (libc::syscall(libc::SYS_setfsuid, u32::MAX), libc::syscall(libc::SYS_setfsgid, u32::MAX))
    };
    if now == (i64::from(uid), i64::from(gid)) {
        Ok(())
    } else if now == (-1, -1) {
        set_effective_user(uid, gid)
    } else {
        Err(io::Error::from_raw_os_error(libc::EPERM))
    }
}

/// The same where the kernel has no such ids, as gVisor's has not: by the thread's effective ids.
/// Its real and saved ones stay, and lead back.
fn set_effective_user(uid: u32, gid: u32) -> io::Result<()> {
    const SAME: u32 = u32::MAX;
    // SAFETY: the calls change this thread's credentials and no memory. Not through libc, which
    // would change those of every thread.
    let set = |call, id: u32| match unsafe { libc::syscall(call, SAME, id, SAME) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // The user that may change groups is the real one: last on the way out, first on the way back.
    if uid == getuid().as_raw() {
        set(libc::SYS_setresuid, uid).and_then(|()| set(libc::SYS_setresgid, gid))
    } else {
        set(libc::SYS_setresgid, gid).and_then(|()| set(libc::SYS_setresuid, uid))
    }
}

/// Does something as somebody else would do it to files, on this thread, and then is itself again,
/// or ends: nothing else here may be done as that somebody.
pub(crate) fn as_file_system_user<T>(
    uid: u32,
    gid: u32,
    action: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let death = parent_process_death_signal()?;
    let result = set_file_system_user(uid, gid).and_then(|()| action());
    let restored = set_file_system_user(user, group);
    // The kernel forgets these with every change of user.
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let followed = set_parent_process_death_signal(death);
    if restored.is_err() || hidden.is_err() || followed.is_err() {
        super::exit(1);
    }
    result
}
