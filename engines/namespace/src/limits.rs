//! A sandbox's limits, checked, as the kernel takes them.

use atoll_agent_client::cgroup::{self, Controller, Host};
use atoll_engine::{Error, Limits, Result};
use atoll_types::quantity::Size;
use rustix::process::{Resource, getrlimit};

/// Below this a shell does not start.
const LEAST_MEMORY: Size = Size(8 << 20);
const LEAST_PIDS: u32 = 4;
const LEAST_FILES: u32 = 16;
const LEAST_DISK: Size = Size(1 << 20);
const LEAST_CPUS: f64 = 0.01;

/// What the agent needs for itself, at the very most; what it writes for its callers into the
/// sandbox's own files is counted as its memory too, and comes on top.
const AGENT_MEMORY: u64 = 512 << 20;
const AGENT_PIDS: u32 = 4096;

/// What a file takes of the disk at least, as far as the number of files goes.
const BYTES_PER_FILE: u64 = 8 << 10;

/// Every bound of one sandbox.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) guests: cgroup::Limits,
    pub(crate) agent: cgroup::Limits,
    pub(crate) open_files: Option<u64>,
    /// Processes of the guests' user, the agent's own among them if it is the same.
    pub(crate) processes: Option<u64>,
    pub(crate) disk: u64,
    pub(crate) inodes: u64,
}

/// Processes of the agent's that count as its guests' where they have one user: itself, the four
/// that touch files, the spawner, and two keepers.
const AGENTS_OWN: u64 = 8;

/// By what this host holds limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) groups: &'a Host,
    /// The kernel counts processes for each user of each user namespace, and a sandbox has its
    /// own: so an rlimit holds for it and for nobody else.
    pub(crate) counted: bool,
}

/// How an ordinary user, or a container, comes by control groups.
pub(crate) const DELEGATION: &str = "without root, start the server in a control group of its \
    own: systemd-run --user --scope -p Delegate=yes atoll serve";

/// Refuses what is too small to work and what this host cannot enforce.
pub(crate) fn bounds(limits: &Limits, means: Means<'_>) -> Result<Bounds> {
    let groups = means.groups;
    let memory = limits.memory.map(|size| size.0);
    least("memory", limits.memory, LEAST_MEMORY)?;
    least("pids", limits.pids, LEAST_PIDS)?;
    least("open_files", limits.open_files, LEAST_FILES)?;
    least("disk", limits.disk, LEAST_DISK)?;
    if let Some(cpus) = limits.cpus
        && !(cpus.is_finite() && cpus >= LEAST_CPUS)
    {
        return Err(Error::invalid(format!("`limits.cpus` is at least {LEAST_CPUS}")));
    }
    let by_rlimit = means.counted && !groups.has(Controller::Pids);
    for (name, asked, controller) in [
        ("memory", memory.is_some(), Controller::Memory),
        ("pids", limits.pids.is_some() && !by_rlimit, Controller::Pids),
        ("cpus", limits.cpus.is_some(), Controller::Cpu),
        ("processor time", limits.cpu_time.is_some(), Controller::CpuTime),
    ] {
        if asked && !groups.has(controller) {
            return Err(Error::unsupported(format!(
                "{name} cannot be limited here: there is no control group for it"
            ))
            .hint(DELEGATION));
        }
    }
    let open_files = limits.open_files.map(u64::from);
    if let (Some(asked), Some(most)) = (open_files, getrlimit(Resource::Nofile).maximum)
        && asked > most
    {
        return Err(Error::unsupported(format!("a process has at most {most} open files here")));
    }
    // Files are kept in memory: without a limit of their own they may have half of it.
    let disk = limits.disk.map_or_else(|| memory.unwrap_or_else(of_host) / 2, |size| size.0);
    Ok(Bounds {
        guests: cgroup::Limits {
            memory,
            pids: limits.pids.filter(|_| !by_rlimit),
            cpus: limits.cpus,
        },
        agent: cgroup::Limits {
            memory: groups.has(Controller::Memory).then(|| disk.saturating_add(AGENT_MEMORY)),
            pids: groups.has(Controller::Pids).then_some(AGENT_PIDS),
            cpus: None,
        },
        open_files,
        processes: limits.pids.filter(|_| by_rlimit).map(|pids| u64::from(pids) + AGENTS_OWN),
        disk,
        inodes: (disk / BYTES_PER_FILE).clamp(4096, 1 << 20),
    })
}

fn least<T: Copy + PartialOrd + std::fmt::Display>(
    name: &str,
    asked: Option<T>,
    least: T,
) -> Result<()> {
    match asked {
        Some(asked) if asked < least => {
            Err(Error::invalid(format!("`limits.{name}` is at least {least}")))
        }
        _ => Ok(()),
    }
}

fn of_host() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(info.mem_unit.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use atoll_engine::ErrorKind;
    use atoll_types::quantity::Span;

    use super::*;

    #[test]
    fn a_limit_too_small_to_work_is_invalid() {
        let host = Host::v2("/nowhere");
        let cpus = |cpus| Limits { cpus: Some(cpus), ..Limits::default() };
        for (limits, message) in [
            (
                Limits { memory: Some(Size(1 << 20)), ..Limits::default() },
                "`limits.memory` is at least 8m",
            ),
            (Limits { pids: Some(0), ..Limits::default() }, "`limits.pids` is at least 4"),
            (
                Limits { open_files: Some(3), ..Limits::default() },
                "`limits.open_files` is at least 16",
            ),
            (Limits { disk: Some(Size(0)), ..Limits::default() }, "`limits.disk` is at least 1m"),
            (cpus(0.0), "`limits.cpus` is at least 0.01"),
            (cpus(-1.0), "`limits.cpus` is at least 0.01"),
            (cpus(f64::NAN), "`limits.cpus` is at least 0.01"),
            (cpus(f64::INFINITY), "`limits.cpus` is at least 0.01"),
        ] {
            let error = bounds(&limits, Means { groups: &host, counted: false }).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{limits:?}");
            assert_eq!(error.message(), message);
        }
    }

    #[test]
    fn a_limit_nobody_here_enforces_is_unsupported() {
        let host = Host::v1([]);
        for limits in [
            Limits { memory: Some(Size(1 << 30)), ..Limits::default() },
            Limits { pids: Some(100), ..Limits::default() },
            Limits { cpus: Some(1.0), ..Limits::default() },
            Limits { cpu_time: Some(Span(Duration::from_secs(1))), ..Limits::default() },
            Limits { open_files: Some(u32::MAX), ..Limits::default() },
        ] {
            let error = bounds(&limits, Means { groups: &host, counted: false }).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{limits:?}");
        }
    }

    #[test]
    fn processes_are_limited_without_groups_where_the_kernel_counts_them() {
        let limits = Limits { pids: Some(24), ..Limits::default() };
        let host = Host::v1([]);
        let bounds = bounds(&limits, Means { groups: &host, counted: true }).unwrap();
        assert_eq!((bounds.guests.pids, bounds.processes), (None, Some(32)));
    }

    #[test]
    fn files_have_half_of_the_memory_unless_told() {
        let host = Host::v2("/nowhere");
        let limits = Limits { memory: Some(Size(64 << 20)), ..Limits::default() };
        assert_eq!(
            bounds(&limits, Means { groups: &host, counted: false }).unwrap().disk,
            32 << 20
        );
        let limits = Limits { disk: Some(Size(5 << 20)), ..limits };
        assert_eq!(bounds(&limits, Means { groups: &host, counted: false }).unwrap().disk, 5 << 20);
    }
}
