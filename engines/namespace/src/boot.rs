//! What the agent is told: how its guests are sealed.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Seek as _, Write as _},
    os::fd::OwnedFd,
};

use atoll_agent_client::seal;
use atoll_agent_protocol::message::{Access, Boot, Rlimit, User};
use atoll_engine::{Root, Spec};
use atoll_launcher::{Ids, Plan, Weakness, descriptor};
use prost::Message as _;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::{
    limits::Bounds,
    root::{GUEST, HOME, WRITABLE},
};

/// `doors` is how many files guests have to join their control groups.
pub(crate) fn boot(
    spec: &Spec,
    bounds: &Bounds,
    plan: &Plan,
    doors: usize,
    weaknesses: &[Weakness],
) -> Boot {
    let alike = matches!(plan.ids, Ids::One(_));
    let weak = |weakness| weaknesses.contains(&weakness);
    let rlimit = |resource: libc::__rlimit_resource_t, value| Rlimit {
        resource: i32::try_from(resource).unwrap_or_default(),
        value,
    };
    // Not 0: a host whose `core_pattern` is a pipe would start its program all the same, with a
    // guest's words. To the kernel 1 means that there is to be no such dump, and a file of one
    // byte is none either. Being the hard limit as well, it cannot be raised.
    let mut rlimits = vec![rlimit(libc::RLIMIT_CORE, 1)];
    rlimits.extend(bounds.open_files.map(|files| rlimit(libc::RLIMIT_NOFILE, files)));
    rlimits.extend(bounds.processes.map(|most| rlimit(libc::RLIMIT_NPROC, most)));
    Boot {
        own_pids: plan.own_pids,
        listener_fd: descriptor::LISTENER,
        cgroup_fds: (descriptor::DOORS..).take(doors).collect(),
        user: (!alike && !weak(Weakness::Root)).then_some(User { uid: GUEST, gid: GUEST }),
        seccomp: (!weak(Weakness::Seccomp))
            .then(|| if alike { seal::seccomp_alike() } else { seal::seccomp() }),
        rlimits,
        home: HOME.to_owned(),
        env: variables(spec),
        disk: HOME.to_owned(),
        landlock: if weak(Weakness::Landlock) { Vec::new() } else { places(spec) },
        // They have a control group of their own.
        oom_score: None,
    }
}

/// A message the agent reads to its end.
pub(crate) fn written(boot: &Boot) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("atoll-boot", MemfdFlags::CLOEXEC)?);
    file.write_all(&boot.encode_to_vec())?;
    file.rewind()?;
    Ok(file.into())
}

/// The guests' variables: what every program expects, and the spec's.
fn variables(spec: &Spec) -> Vec<String> {
    let mut all = BTreeMap::from([
        ("HOME", HOME),
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("USER", "user"),
    ]);
    all.extend(spec.env.iter().map(|(name, value)| (&**name, &**value)));
    all.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Where guests may read, and where they may write: what ids and mounts allow, said again to
/// another part of the kernel.
fn places(spec: &Spec) -> Vec<Access> {
    let place = |path: &str, writable| Access { path: path.to_owned(), writable };
    if let Root::Directory(_) = spec.root {
        return vec![place("/", true)];
    }
    let mut places = vec![place("/", false), place(HOME, true)];
    // Devices are written too, and what a process may set about itself.
    places.extend(WRITABLE.iter().chain(&["/dev", "/proc"]).map(|path| place(path, true)));
    let shown = spec.mounts.iter().filter(|mount| mount.writable);
    places.extend(shown.map(|mount| place(&mount.guest.to_string_lossy(), true)));
    places
}
