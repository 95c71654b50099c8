//! A control group of version 2 that an ordinary user was given, as systemd does with `Delegate=yes`.
//!
//! It is the one this process was started in. Groups with limits can be made in it only once no
//! process is in it, so this one moves to one of its own below; others that are in it were not
//! given with it, and then it is of no use.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use rustix::fs::{Access, access};

/// Where this process goes to make room.
const OWN: &str = "atoll.daemon";

/// The directory of such a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delegated {
    pub(super) directory: PathBuf,
}

impl Delegated {
    /// Finds this process's; changes nothing.
    pub(super) fn find() -> Option<Self> {
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let at = directory(&mountinfo, &groups)?;
        let files = ["cgroup.procs", "cgroup.subtree_control"].map(|name| at.join(name));
        let ours = [&at].into_iter().chain(&files);
        if !ours.into_iter().all(|path| access(path, Access::WRITE_OK).is_ok()) {
            return None;
        }
        let text = |name: &str| fs::read_to_string(at.join(name)).unwrap_or_default();
        let own = std::process::id().to_string();
        usable(&text("cgroup.controllers"), &text("cgroup.procs"), &own)
            .then_some(Self { directory: at })
    }

    /// Moves this process out of the way.
    pub(super) fn leave(&self) -> io::Result<()> {
        let own = self.directory.join(OWN);
        match fs::create_dir(&own) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        fs::write(own.join("cgroup.procs"), std::process::id().to_string())
    }
}

/// Where the group is that a process with this `/proc/PID/cgroup` was given.
fn directory(mountinfo: &str, groups: &str) -> Option<PathBuf> {
    let path = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::/"))?);
    // Something above the mount cannot be reached.
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let (root, mount) = mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        after.starts_with("cgroup2 ").then_some((fields.next()?, fields.next()?))
    })?;
    let below = path.strip_prefix(root.trim_start_matches('/')).ok()?;
    // Moved there by an earlier sandbox.
    let below = if below.ends_with(OWN) { below.parent()? } else { below };
    Some(Path::new(mount).join(below))
}

/// Whether all is there, and nobody else.
fn usable(controllers: &str, processes: &str, own: &str) -> bool {
    let has = |name| controllers.split_whitespace().any(|word| word == name);
    ["cpu", "memory", "pids"].into_iter().all(has) && processes.lines().all(|pid| pid == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str =
        "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn a_process_is_found_where_it_was_started() {
        let at = |groups: &str| directory(UNIFIED, groups);
        let scope = "/sys/fs/cgroup/user.slice/user@1000.service/run-1.scope";
        assert_eq!(at("0::/user.slice/user@1000.service/run-1.scope\n"), Some(scope.into()));
        let moved = "0::/user.slice/user@1000.service/run-1.scope/atoll.daemon\n";
        assert_eq!(at(moved), Some(scope.into()));
        assert_eq!(at("0::/\n"), Some("/sys/fs/cgroup".into()));
        assert_eq!(at("0::/../../elsewhere\n"), None);
        assert_eq!(at("4:memory:/x\n"), None);
        assert_eq!(directory("", "0::/x\n"), None);
    }

    #[test]
    fn a_mount_of_a_part_shows_that_part() {
        let part = "30 25 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(directory(part, "0::/docker/abc/x\n"), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(directory(part, "0::/elsewhere\n"), None);
    }

    #[test]
    fn a_place_shared_with_others_or_without_controllers_is_of_no_use() {
        let all = "cpuset cpu io memory pids";
        assert!(usable(all, "", "7"));
        assert!(usable(all, "7\n", "7"));
        assert!(!usable(all, "7\n8\n", "7"));
        assert!(!usable("memory pids", "7\n", "7"));
    }
}
