//! File names of version 1: one tree for each controller.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Controller, Limits, keyed, number, quota_us};
use crate::Counters;

pub(super) fn limit(at: &BTreeMap<Controller, PathBuf>, limits: &Limits) -> io::Result<()> {
    if let Some(memory) = limits.memory {
        let directory = place(at, Controller::Memory)?;
        fs::write(directory.join("memory.limit_in_bytes"), memory.to_string())?;
        // Memory and swap together; the file is missing where swap is not counted.
        let both = directory.join("memory.memsw.limit_in_bytes");
        if both.exists() {
            fs::write(both, memory.to_string())?;
        }
        // What waits in sockets is counted apart, and without a limit is limited for the whole host
        // only. Kernels that do not count it have no such file, or let nobody write it.
        let sockets = directory.join("memory.kmem.tcp.limit_in_bytes");
        if sockets.exists()
            && let Err(error) = fs::write(sockets, memory.to_string())
        {
            tracing::debug!(?error, "memory of sockets is not limited");
        }
    }
    if let Some(pids) = limits.pids {
        fs::write(place(at, Controller::Pids)?.join("pids.max"), pids.to_string())?;
    }
    if let Some(cpus) = limits.cpus {
        let directory = place(at, Controller::Cpu)?;
        fs::write(directory.join("cpu.cfs_period_us"), "100000")?;
        fs::write(directory.join("cpu.cfs_quota_us"), quota_us(cpus).to_string())?;
    }
    Ok(())
}

pub(super) fn counters(at: &BTreeMap<Controller, PathBuf>) -> Counters {
    let read = |controller, name| number(&at.get(&controller)?.join(name));
    let find = |controller, name, key| keyed(&at.get(&controller)?.join(name), key);
    Counters {
        cpu_time: read(Controller::CpuTime, "cpuacct.usage").map(Duration::from_nanos),
        memory: read(Controller::Memory, "memory.usage_in_bytes"),
        peak_memory: read(Controller::Memory, "memory.max_usage_in_bytes"),
        oom_kills: find(Controller::Memory, "memory.oom_control", "oom_kill"),
        pids: read(Controller::Pids, "pids.current"),
        pids_refused: find(Controller::Pids, "pids.events", "max"),
    }
}

fn place(at: &BTreeMap<Controller, PathBuf>, controller: Controller) -> io::Result<&Path> {
    at.get(&controller)
        .map(PathBuf::as_path)
        .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, format!("no {controller:?}")))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Group, Host},
        *,
    };

    fn group(root: &Path) -> Group {
        let at = |name: &str| root.join(name);
        let host = Host::v1([
            (Controller::Cpu, at("cpu")),
            (Controller::CpuTime, at("cpu")),
            (Controller::Memory, at("memory")),
            (Controller::Pids, at("pids")),
        ]);
        let all = [Controller::Cpu, Controller::CpuTime, Controller::Memory, Controller::Pids];
        Group::new(&host, Path::new("atoll/x"), &all)
    }

    #[test]
    fn limits_are_written_where_version_1_has_them() {
        let root = tempfile::tempdir().unwrap();
        let limits = Limits { memory: Some(1 << 20), pids: Some(7), cpus: Some(0.5) };
        group(root.path()).create(&limits).unwrap();
        let read = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
        assert_eq!(read("memory/atoll/x/memory.limit_in_bytes"), "1048576");
        assert_eq!(read("pids/atoll/x/pids.max"), "7");
        assert_eq!(read("cpu/atoll/x/cpu.cfs_quota_us"), "50000");
    }

    #[test]
    fn memory_of_sockets_is_limited_where_the_kernel_counts_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| BTreeMap::from([(Controller::Memory, root.path().join(name))]);
        let sockets = |name: &str| root.path().join(name).join("memory.kmem.tcp.limit_in_bytes");
        let limits = Limits { memory: Some(1 << 20), ..Limits::default() };
        for name in ["counts", "refuses", "does not"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::write(sockets("counts"), "9223372036854771712").unwrap();
        // No content can be written to a directory.
        fs::create_dir(sockets("refuses")).unwrap();

        for name in ["counts", "refuses", "does not"] {
            limit(&at(name), &limits).unwrap();
        }

        assert_eq!(fs::read_to_string(sockets("counts")).unwrap(), "1048576");
        assert!(!sockets("does not").exists());
    }

    #[test]
    fn what_keeps_a_group_from_growing_comes_first() {
        let root = tempfile::tempdir().unwrap();

        let first = group(root.path()).in_order_of_ending().next().unwrap().to_owned();

        assert_eq!(first, root.path().join("pids/atoll/x"));
        assert_eq!(group(root.path()).in_order_of_ending().count(), 3);
    }

    #[test]
    fn a_limit_without_its_controller_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::v1([(Controller::Pids, root.path().to_owned())]);
        let group = Group::new(&host, Path::new("x"), &[Controller::Pids, Controller::Memory]);
        let error = group.create(&Limits { memory: Some(1), ..Limits::default() }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn figures_are_read_where_version_1_has_them() {
        let root = tempfile::tempdir().unwrap();
        let group = group(root.path());
        group.create(&Limits::default()).unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        write("cpu/atoll/x/cpuacct.usage", "1500000\n");
        write("memory/atoll/x/memory.usage_in_bytes", "10\n");
        write("memory/atoll/x/memory.max_usage_in_bytes", "20\n");
        write("memory/atoll/x/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
        write("pids/atoll/x/pids.current", "4\n");
        write("pids/atoll/x/pids.events", "max 5\n");
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
