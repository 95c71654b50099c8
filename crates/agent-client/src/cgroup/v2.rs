//! File names of version 2: one tree for all.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Controller, Limits, keyed, number, quota_us};
use crate::Counters;

/// Lets the children of `parent`, and of its parent, use the controllers.
pub(super) fn delegate(parent: &Path) -> io::Result<()> {
    for directory in parent.parent().into_iter().chain([parent]) {
        fs::write(directory.join("cgroup.subtree_control"), "+cpu +memory +pids")?;
    }
    Ok(())
}

pub(super) fn limit(at: &BTreeMap<Controller, PathBuf>, limits: &Limits) -> io::Result<()> {
    let Some(directory) = at.values().next() else { return Ok(()) };
    if let Some(memory) = limits.memory {
        fs::write(directory.join("memory.max"), memory.to_string())?;
        // Missing where swap is not counted.
        let swap = directory.join("memory.swap.max");
        if swap.exists() {
            fs::write(swap, "0")?;
        }
    }
    if let Some(pids) = limits.pids {
        fs::write(directory.join("pids.max"), pids.to_string())?;
    }
    if let Some(cpus) = limits.cpus {
        fs::write(directory.join("cpu.max"), format!("{} 100000", quota_us(cpus)))?;
    }
    Ok(())
}

pub(super) fn counters(at: &BTreeMap<Controller, PathBuf>) -> Counters {
    let Some(directory) = at.values().next() else { return Counters::default() };
    Counters {
        cpu_time: keyed(&directory.join("cpu.stat"), "usage_usec").map(Duration::from_micros),
        memory: number(&directory.join("memory.current")),
        peak_memory: number(&directory.join("memory.peak")),
        oom_kills: keyed(&directory.join("memory.events"), "oom_kill"),
        pids: number(&directory.join("pids.current")),
        pids_refused: keyed(&directory.join("pids.events"), "max"),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Group, Host},
        *,
    };

    const ALL: [Controller; 4] =
        [Controller::Cpu, Controller::CpuTime, Controller::Memory, Controller::Pids];

    #[test]
    fn limits_are_written_where_version_2_has_them() {
        let root = tempfile::tempdir().unwrap();
        let group = Group::new(&Host::v2(root.path()), Path::new("atoll/x"), &ALL);
        let limits = Limits { memory: Some(1 << 20), pids: Some(7), cpus: Some(1.5) };
        group.create(&limits).unwrap();
        let read = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
        assert_eq!(read("cgroup.subtree_control"), "+cpu +memory +pids");
        assert_eq!(read("atoll/cgroup.subtree_control"), "+cpu +memory +pids");
        assert_eq!(read("atoll/x/memory.max"), "1048576");
        assert_eq!(read("atoll/x/pids.max"), "7");
        assert_eq!(read("atoll/x/cpu.max"), "150000 100000");
    }

    #[test]
    fn figures_are_read_where_version_2_has_them() {
        let root = tempfile::tempdir().unwrap();
        let group = Group::new(&Host::v2(root.path()), Path::new("atoll/x"), &ALL);
        group.create(&Limits::default()).unwrap();
        let write = |name: &str, text: &str| {
            fs::write(root.path().join("atoll/x").join(name), text).unwrap();
        };
        write("cpu.stat", "usage_usec 1500\nuser_usec 1000\n");
        write("memory.current", "10\n");
        write("memory.peak", "20\n");
        write("memory.events", "low 0\noom 9\noom_kill 3\noom_group_kill 1\n");
        write("pids.current", "4\n");
        write("pids.events", "max 5\n");
        let expected = Counters {
            cpu_time: Some(Duration::from_micros(1500)),
            memory: Some(10),
            peak_memory: Some(20),
            oom_kills: Some(3),
            pids: Some(4),
            pids_refused: Some(5),
        };
        assert_eq!(group.counters(), expected);
    }
}
