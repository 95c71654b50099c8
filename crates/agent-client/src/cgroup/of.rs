//! The group that somebody else has put a process in.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Controller, Group, Host, Version};

impl Group {
    /// The group of a process, to be read. Who may not write it may still look.
    ///
    /// What cannot be found of it is left out, and so are its figures.
    pub fn of(pid: i32) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        Ok(Self::listed(&Host::seen()?, &text))
    }

    fn listed(host: &Host, text: &str) -> Self {
        let all = [Controller::Cpu, Controller::CpuTime, Controller::Memory, Controller::Pids];
        let directories = all.into_iter().filter_map(|controller| {
            let mount = host.mount(controller)?;
            let path = path(text, host.version(), controller)?;
            Some((controller, mount.join(path)))
        });
        Self { version: host.version(), directories: directories.collect() }
    }

    /// The processes in it, by their numbers now.
    pub fn members(&self) -> Vec<i32> {
        let Some(directory) = self.directories.get(&Controller::Pids) else { return Vec::new() };
        let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

/// A controller's line of `/proc/PID/cgroup`, relative to where the controller is mounted.
fn path(text: &str, version: Version, controller: Controller) -> Option<PathBuf> {
    let name = match controller {
        _ if version == Version::V2 => "",
        Controller::Cpu => "cpu",
        Controller::CpuTime => "cpuacct",
        Controller::Memory => "memory",
        Controller::Pids => "pids",
    };
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let controllers = parts.nth(1)?;
        let path = parts.next()?;
        let named = controllers.split(',').any(|one| one == name);
        named.then(|| Path::new(path.trim_start_matches('/')).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_controller_of_version_1_has_its_own_line() {
        let text = "5:pids:/docker/x\n4:cpu,cpuacct:/docker/y\n0::/elsewhere\n";
        let host = Host::v1([
            (Controller::Pids, "/cg/pids".into()),
            (Controller::CpuTime, "/cg/cpu".into()),
            (Controller::Memory, "/cg/memory".into()),
        ]);

        let group = Group::listed(&host, text);

        let found: Vec<_> = group.directories.values().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(found, ["/cg/cpu/docker/y", "/cg/pids/docker/x"]);
    }

    #[test]
    fn version_2_has_one_line_for_all() {
        let group = Group::listed(&Host::v2("/cg"), "0::/system.slice/docker-x.scope\n");

        assert!(
            group.directories.values().all(|path| path.ends_with("system.slice/docker-x.scope"))
        );
        assert_eq!(group.directories.len(), 4);
    }

    #[test]
    fn this_process_is_in_its_own_group() {
        let own = i32::try_from(std::process::id()).unwrap();
        let group = Group::of(own).unwrap();

        // A machine without control groups has no members anywhere.
        let members = group.members();
        assert!(members.is_empty() || members.contains(&own), "{group:?}");
    }
}
