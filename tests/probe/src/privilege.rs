//! Attempts to gain what a guest must not have: mounts, namespaces, sockets, keys (H02-H05, H09).

use std::{collections::BTreeMap, ffi::CString, fs};

use serde_json::{Value, json};

use crate::{
    sys::{self, Answer},
    word,
};

/// Each attempt in a child of its own, by name.
#[derive(Default)]
pub(crate) struct Attempts {
    answers: BTreeMap<String, String>,
    /// Try first to be somebody in namespaces of one's own.
    nested: bool,
}

impl Attempts {
    pub(crate) fn with(&mut self, name: impl Into<String>, body: impl FnOnce() -> Answer) {
        let nested = self.nested;
        let outcome = sys::isolated(|| {
            if nested {
                let both = (libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize;
                sys::call(libc::SYS_unshare, [both, 0, 0, 0, 0, 0]).ok();
            }
            body()
        });
        self.answers.insert(name.into(), word::outcome(outcome));
    }

    /// One call by number.
    pub(crate) fn call(&mut self, name: impl Into<String>, number: i64, arguments: &[usize]) {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        self.with(name, || sys::call(number, all));
    }

    pub(crate) fn told(self) -> Value {
        json!(self.answers)
    }
}

/// A text the kernel can read, kept for the rest of the process.
pub(crate) fn text(value: &str) -> usize {
    CString::new(value).map_or(0, |value| value.into_raw() as usize)
}

/// Changing the mount tree (H02). `read_only` is a read-only mount of the host's.
pub(crate) fn mounts(read_only: &str, nested: bool) -> Value {
    let mut attempts = Attempts { nested, ..Attempts::default() };
    let [tmp, tmpfs, proc, root, dot, target] =
        ["/tmp", "tmpfs", "/proc", "/", ".", read_only].map(text);
    let flags = |flags: libc::c_ulong| flags as usize;
    let remount = flags(libc::MS_REMOUNT | libc::MS_BIND);
    let at = libc::AT_FDCWD as usize;
    attempts.call("mount tmpfs", libc::SYS_mount, &[tmpfs, tmp, tmpfs, 0, 0]);
    attempts.call("mount proc", libc::SYS_mount, &[text("proc"), tmp, text("proc"), 0, 0]);
    attempts.call("bind", libc::SYS_mount, &[root, tmp, 0, flags(libc::MS_BIND), 0]);
    attempts.call("remount writable", libc::SYS_mount, &[0, target, 0, remount, 0]);
    attempts.call("remount root writable", libc::SYS_mount, &[0, root, 0, remount, 0]);
    attempts.call("move", libc::SYS_mount, &[target, tmp, 0, flags(libc::MS_MOVE), 0]);
    attempts.call("propagate", libc::SYS_mount, &[0, root, 0, flags(libc::MS_SHARED), 0]);
    attempts.call("unmount proc", libc::SYS_umount2, &[proc, libc::MNT_DETACH as usize]);
    attempts.call("unmount shared", libc::SYS_umount2, &[target, libc::MNT_DETACH as usize]);
    attempts.call("pivot_root", libc::SYS_pivot_root, &[dot, dot]);
    attempts.call("chroot", libc::SYS_chroot, &[tmp]);
    attempts.call("open_tree", libc::SYS_open_tree, &[at, root, 1]);
    attempts.call("move_mount", libc::SYS_move_mount, &[at, target, at, tmp, 0]);
    attempts.call("fsopen", libc::SYS_fsopen, &[tmpfs, 0]);
    attempts.call("fspick", libc::SYS_fspick, &[at, root, 0]);
    let attributes = [0_u64, 1, 0, 0];
    let pointer = attributes.as_ptr() as usize;
    attempts.call("mount_setattr", libc::SYS_mount_setattr, &[at, target, 0, pointer, 32]);
    attempts.told()
}

/// Writing to files that are shown read-only.
pub(crate) fn overwrite(path: &str) -> Value {
    let write = fs::OpenOptions::new().write(true).open(path);
    let truncate = fs::OpenOptions::new().write(true).truncate(true).open(path);
    json!({
        "open for writing": word::io(write),
        "truncate": word::io(truncate),
        "remove": word::io(fs::remove_file(path)),
        "rename over": word::io(fs::rename(path, format!("{path}.moved"))),
        "create beside": word::io(fs::write(format!("{path}.beside"), "x")),
        "change mode": word::io(fs::set_permissions(path, mode())),
    })
}

fn mode() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o777)
}

const NAMESPACES: [(&str, i32); 8] = [
    ("mount", libc::CLONE_NEWNS),
    ("control group", libc::CLONE_NEWCGROUP),
    ("names", libc::CLONE_NEWUTS),
    ("ipc", libc::CLONE_NEWIPC),
    ("user", libc::CLONE_NEWUSER),
    ("process", libc::CLONE_NEWPID),
    ("network", libc::CLONE_NEWNET),
    ("time", 0x80),
];

/// Making or entering namespaces (H03, H04).
pub(crate) fn namespaces() -> Value {
    let mut attempts = Attempts::default();
    for (name, flag) in NAMESPACES {
        attempts.call(format!("unshare {name}"), libc::SYS_unshare, &[flag as usize]);
        // The exit signal's bits and the time namespace's overlap: clone cannot make one.
        if flag != 0x80 {
            attempts.with(format!("clone {name}"), || {
                let flags = (flag | libc::SIGCHLD) as usize;
                let answer = sys::call(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]);
                if answer == Ok(0) {
                    sys::leave(0);
                }
                answer
            });
        }
    }
    attempts.with("clone3", || {
        let arguments = [0_u64; 11];
        let answer = sys::call(libc::SYS_clone3, [arguments.as_ptr() as usize, 88, 0, 0, 0, 0]);
        if answer == Ok(0) {
            sys::leave(0);
        }
        answer
    });
    for owner in ["self", "1"] {
        for kind in ["mnt", "uts", "ipc", "user", "pid", "net", "cgroup"] {
            attempts.with(format!("enter {kind} of {owner}"), || {
                let path = text(&format!("/proc/{owner}/ns/{kind}"));
                let at = libc::AT_FDCWD as usize;
                let file = sys::call(libc::SYS_openat, [at, path, 0, 0, 0, 0])?;
                sys::call(libc::SYS_setns, [file as usize, 0, 0, 0, 0, 0])
            });
        }
    }
    attempts.told()
}

/// A user namespace of one's own, and mounts with the rights it would give (H04).
pub(crate) fn nested() -> Value {
    let mut attempts = Attempts::default();
    let both = (libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize;
    attempts.call("user namespace", libc::SYS_unshare, &[libc::CLONE_NEWUSER as usize]);
    attempts.with("mount inside one", || {
        sys::call(libc::SYS_unshare, [both, 0, 0, 0, 0, 0])?;
        let [tmpfs, tmp] = ["tmpfs", "/tmp"].map(text);
        sys::call(libc::SYS_mount, [tmpfs, tmp, tmpfs, 0, 0, 0])
    });
    attempts.told()
}

/// Every socket family and type (H09, J05).
pub(crate) fn sockets() -> Value {
    let mut attempts = Attempts::default();
    let types = [
        ("stream", libc::SOCK_STREAM),
        ("datagram", libc::SOCK_DGRAM),
        ("raw", libc::SOCK_RAW),
        ("seqpacket", libc::SOCK_SEQPACKET),
    ];
    for family in 0..=50_usize {
        for (name, kind) in types {
            let kind = kind as usize;
            attempts.call(format!("socket {family} {name}"), libc::SYS_socket, &[family, kind]);
        }
        let mut pair = [0_i32; 2];
        let pointer = pair.as_mut_ptr() as usize;
        let stream = libc::SOCK_STREAM as usize;
        attempts.call(
            format!("pair {family}"),
            libc::SYS_socketpair,
            &[family, stream, 0, pointer],
        );
    }
    for protocol in 0..=22_usize {
        let (family, raw) = (libc::AF_NETLINK as usize, libc::SOCK_RAW as usize);
        attempts.call(format!("netlink {protocol}"), libc::SYS_socket, &[family, raw, protocol]);
    }
    attempts.call("io_uring", libc::SYS_io_uring_setup, &[1, text("")]);
    attempts.told()
}

/// The kernel's keyrings (J03).
pub(crate) fn keys() -> Value {
    let mut attempts = Attempts::default();
    let [user, name, keyring] = ["user", "atoll-probe", "keyring"].map(text);
    // KEY_SPEC_PROCESS_KEYRING .. KEY_SPEC_USER_SESSION_KEYRING
    for ring in 1..=5_usize {
        let ring = 0_usize.wrapping_sub(ring);
        attempts.call(
            format!("add to {}", 0_usize.wrapping_sub(ring)),
            libc::SYS_add_key,
            &[user, name, user, 4, ring],
        );
    }
    attempts.call("add a keyring", libc::SYS_add_key, &[keyring, name, 0, 0, usize::MAX - 2]);
    attempts.call("request", libc::SYS_request_key, &[user, name, 0, usize::MAX - 2]);
    attempts.call("find the session's", libc::SYS_keyctl, &[0, usize::MAX - 2, 0]);
    attempts.call("join a session", libc::SYS_keyctl, &[1, 0]);
    attempts.call("persistent", libc::SYS_keyctl, &[22, usize::MAX, usize::MAX - 1]);
    attempts.told()
}
