//! `/proc` of the sandbox's own processes, without what it tells and does about the host.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use atoll_launcher::{Plan, Weakness};
use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
    mount::MountAttrFlags,
};

use crate::{mounts, sys};

/// Files that show the host's inside or act on it: an empty file covers them.
const HIDDEN: [&str; 12] = [
    "cmdline",
    "interrupts",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "latency_stats",
    "sched_debug",
    "sysrq-trigger",
    "timer_list",
    "timer_stats",
];

/// Directories whose files are settings of the host.
const READ_ONLY: [&str; 4] = ["bus", "fs", "irq", "sys"];

/// Directories about the host's hardware and how busy it is: an empty one covers them.
const EMPTY: [&str; 4] = ["acpi", "asound", "pressure", "scsi"];

/// What a sandbox may have of things the kernel counts for each user namespace. Not one namespace
/// more: with a nested user namespace come capabilities over it, and with them much more of the
/// kernel to attack.
const COUNTED: [(&str, &str); 8] = [
    ("max_user_namespaces", "0"),
    ("max_mnt_namespaces", "0"),
    ("max_pid_namespaces", "0"),
    ("max_net_namespaces", "0"),
    ("max_ipc_namespaces", "0"),
    ("max_uts_namespaces", "0"),
    ("max_cgroup_namespaces", "0"),
    ("max_time_namespaces", "0"),
];

/// What counts for whoever made the sandbox as well: were that all of one ordinary user's, one
/// sandbox could use up what the others and the user's own programs need.
const COUNTED_OF_USER: [(&str, &str); 4] = [
    ("max_inotify_instances", "32"),
    ("max_inotify_watches", "4096"),
    ("max_fanotify_groups", "0"),
    ("max_fanotify_marks", "0"),
];

/// The files of [`COUNTED`] and what belongs into them.
pub(crate) struct Counts(Vec<(File, &'static str)>);

/// Mounts it in `root`. The host's must still be visible: the kernel wants to see that nothing in
/// it is hidden from whoever asks for a new one.
///
/// Gives back the files of [`COUNTED`], open, to be written when no mount is left to be made.
pub(crate) fn show(plan: &Plan, root: BorrowedFd<'_>) -> io::Result<Counts> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = mounts::make("proc", &[], attributes)?;
    mounts::put(&proc, mounts::directory(root, Path::new("proc"))?.as_fd())?;
    let counts = if plan.is_weak(Weakness::NestedUsers) {
        Counts(vec![])
    } else {
        counts(&proc, plan.is_ordinary())?
    };
    if plan.own_pids > 0 {
        count_from(&proc, plan.own_pids)?;
    }
    if plan.is_weak(Weakness::Proc) {
        return Ok(counts);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let look = |name: &str| match openat(&proc, name, flags, Mode::empty()) {
        // Not in this kernel.
        Err(Errno::NOENT) => Ok(None),
        found => found.map(Some),
    };
    let null = mounts::find(root, Path::new("dev/null"), OFlags::PATH)?;
    for name in HIDDEN {
        if let Some(place) = look(name)? {
            let cover = mounts::copy_with(null.as_fd(), "", sys::NO_SUID | sys::READ_ONLY)?;
            mounts::put(cover, place.as_fd())?;
        }
    }
    for name in READ_ONLY {
        if let Some(place) = look(name)? {
            let all = sys::NO_SUID | sys::NO_DEV | sys::READ_ONLY;
            mounts::put(mounts::copy_with(proc.as_fd(), name, all)?, place.as_fd())?;
        }
    }
    for name in EMPTY {
        if let Some(place) = look(name)? {
            let options = [("size", Some("0")), ("nr_inodes", Some("1")), ("mode", Some("555"))];
            let attributes = attributes | MountAttrFlags::MOUNT_ATTR_RDONLY;
            mounts::put(mounts::make("tmpfs", &options, attributes)?, place.as_fd())?;
        }
    }
    Ok(counts)
}

/// Tells the kernel which number it gave last. Where it cannot be told it counts: see `numbers`.
fn count_from(proc: &OwnedFd, last: i32) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(proc, "sys/kernel/ns_last_pid", flags, Mode::empty()) {
        Err(Errno::NOENT) => Ok(()),
        opened => File::from(opened?).write_all(last.to_string().as_bytes()),
    }
}

fn counts(proc: &OwnedFd, ordinary: bool) -> io::Result<Counts> {
    let mut counts = Vec::new();
    let more = if ordinary { &COUNTED_OF_USER[..] } else { &[] };
    for &(name, most) in COUNTED.iter().chain(more) {
        let path = Path::new("sys/user").join(name);
        match openat(proc, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) => {}
            opened => counts.push((File::from(opened?), most)),
        }
    }
    Ok(Counts(counts))
}

impl Counts {
    /// Sets them. A detached mount is in a namespace too: from now on none can be made.
    pub(crate) fn set(self) -> io::Result<()> {
        self.0.into_iter().try_for_each(|(mut file, most)| file.write_all(most.as_bytes()))
    }
}
