//! Whether this host can run sandboxes, and how well.

use std::fs;

use atoll_agent_client::cgroup::{Controller, Host, Version};
use atoll_engine::{Error, Fact, Grade, Probe, Result, Strength};

use rustix::thread::CapabilitySet;

use crate::{root, sys};

/// `mount_setattr`, without which nothing is shown read-only in one step.
const OLDEST: (u32, u32) = (5, 12);

/// What the launcher cannot do without.
const NEEDED: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::SETUID).union(CapabilitySet::SETGID);

pub(crate) fn probe(groups: &Host) -> Result<Probe> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::unavailable("the namespace engine needs root")
            .hint("start the daemon as root (sudo atoll serve)"));
    }
    let held = rustix::thread::capabilities(None).map(|sets| sets.effective);
    if !held.is_ok_and(|held| held.contains(NEEDED)) {
        return Err(Error::unavailable("this root may not make namespaces or change ids")
            .hint("in a container, give it CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID"));
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if version(&release).is_none_or(|found| found < OLDEST) {
        return Err(Error::unavailable(format!("Linux {release} is too old"))
            .hint("use Linux 5.12 or newer"));
    }
    let most = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    if most.trim().parse::<u64>().unwrap_or(0) == 0 {
        return Err(Error::unavailable("this kernel makes no user namespaces")
            .hint("sysctl user.max_user_namespaces=10000"));
    }
    Ok(Probe { grades: grades(groups), facts: facts(groups, release) })
}

fn grades(groups: &Host) -> Vec<Grade> {
    let by_group = |limit: &str, controller| {
        let (strength, by) = if groups.has(controller) {
            (Strength::Full, format!("control group ({})", name(groups.version())))
        } else {
            (Strength::Refused, "this host has no control group for it".to_owned())
        };
        Grade { limit: limit.to_owned(), strength, by }
    };
    let full = |limit: &str, by: &str| Grade {
        limit: limit.to_owned(),
        strength: Strength::Full,
        by: by.to_owned(),
    };
    vec![
        full("timeout", "the daemon, and the agent should the daemon be gone"),
        by_group("memory", Controller::Memory),
        by_group("cpus", Controller::Cpu),
        by_group("cpu_time", Controller::CpuTime),
        by_group("pids", Controller::Pids),
        full("open_files", "rlimit of each process"),
        full("output", "the agent"),
        Grade {
            limit: "disk".to_owned(),
            strength: Strength::Weak,
            by: "size of a tmpfs, whose content is memory and counted as such".to_owned(),
        },
    ]
}

fn facts(groups: &Host, release: String) -> Vec<Fact> {
    let landlock = sys::landlock_version();
    let fact = |name: &str, value: String| Fact { name: name.to_owned(), value };
    vec![
        fact("kernel", release),
        fact("cgroup", name(groups.version()).to_owned()),
        fact("landlock", landlock.map_or("none".to_owned(), |abi| format!("ABI {abi}"))),
        fact("host root", root::listed()),
    ]
}

fn name(version: Version) -> &'static str {
    match version {
        Version::V1 => "cgroup v1",
        Version::V2 => "cgroup v2",
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_whatever_follows_the_numbers() {
        assert_eq!(version("6.18.44-fc"), Some((6, 18)));
        assert_eq!(version("5.10-arch1"), Some((5, 10)));
        assert_eq!(version("unknown"), None);
    }
}
