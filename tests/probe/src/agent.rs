//! Attempts on what keeps the sandbox: its first process, the agent and its keepers (C10, C11).

use std::fs;

use serde_json::Value;

use crate::{
    privilege::{Attempts, text},
    sys,
};

/// Every process that can be seen and is not of this one's own making.
fn strangers() -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut all: Vec<i32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| *process != own)
        .collect();
    // The agent's processes may be hidden; they are near the beginning, and one is our parent.
    let parent = sys::call(libc::SYS_getppid, [0; 6]).unwrap_or(1);
    all.extend([1, 2, 3, i32::try_from(parent).unwrap_or(1)]);
    all.sort_unstable();
    all.dedup();
    all.retain(|process| *process > 0 && *process != own);
    all
}

/// Signals that would end or stop it (C10).
pub(crate) fn signals() -> Value {
    let mut attempts = Attempts::default();
    for process in strangers() {
        for (name, signal) in [("stop", libc::SIGSTOP), ("kill", libc::SIGKILL)] {
            attempts.with(format!("{name} {process}"), || sys::kill(process, signal));
        }
        attempts.with(format!("by descriptor {process}"), || {
            let file = sys::call(libc::SYS_pidfd_open, [process as usize, 0, 0, 0, 0, 0])?;
            let (file, kill) = (file as usize, libc::SIGKILL as usize);
            sys::call(libc::SYS_pidfd_send_signal, [file, kill, 0, 0, 0, 0])
        });
    }
    // Everybody at once; whom that hits depends, so its answer tells nothing.
    sys::handle(libc::SIGTERM, None);
    attempts.with("terminate all", || sys::kill(-1, libc::SIGTERM));
    attempts.told()
}

/// Its memory, its descriptors, its threads (C11).
pub(crate) fn peeks() -> Value {
    let mut attempts = Attempts::default();
    let mut buffer = [0_u8; 64];
    let here = [buffer.as_mut_ptr() as usize, buffer.len()];
    let local = here.as_ptr() as usize;
    for process in strangers() {
        let target = process as usize;
        attempts.call(format!("attach {process}"), libc::SYS_ptrace, &[16, target]);
        attempts.call(format!("seize {process}"), libc::SYS_ptrace, &[0x4206, target]);
        for (name, number) in
            [("read", libc::SYS_process_vm_readv), ("write", libc::SYS_process_vm_writev)]
        {
            attempts.call(format!("{name} {process}"), number, &[target, local, 1, local, 1, 0]);
        }
        attempts.with(format!("take descriptor of {process}"), || {
            let file = sys::call(libc::SYS_pidfd_open, [target, 0, 0, 0, 0, 0])?;
            sys::call(libc::SYS_pidfd_getfd, [file as usize, 0, 0, 0, 0, 0])
        });
        for name in ["mem", "environ", "maps", "auxv", "syscall", "fd", "cwd/.", "root/.", "exe"] {
            attempts.with(format!("open {name} of {process}"), || {
                let path = text(&format!("/proc/{process}/{name}"));
                sys::call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, 0, 0, 0, 0])
            });
        }
    }
    attempts.told()
}

/// Its limits and its share of the processor.
pub(crate) fn limits() -> Value {
    let mut attempts = Attempts::default();
    let none = [0_u64, 0];
    let pointer = none.as_ptr() as usize;
    let parameters = [0_i32];
    for process in strangers() {
        let target = process as usize;
        for (name, resource) in [
            ("files", libc::RLIMIT_NOFILE),
            ("processor", libc::RLIMIT_CPU),
            ("memory", libc::RLIMIT_AS),
        ] {
            attempts.call(
                format!("limit {name} of {process}"),
                libc::SYS_prlimit64,
                &[target, resource as usize, pointer, 0],
            );
        }
        attempts.call(format!("nice {process}"), libc::SYS_setpriority, &[0, target, 19]);
        let idle = [target, libc::SCHED_IDLE as usize, parameters.as_ptr() as usize];
        attempts.call(format!("idle {process}"), libc::SYS_sched_setscheduler, &idle);
        attempts.with(format!("score of {process}"), || {
            fs::write(format!("/proc/{process}/oom_score_adj"), "1000")
                .map(|()| 0)
                .map_err(|error| error.raw_os_error().unwrap_or(0))
        });
    }
    attempts.told()
}
