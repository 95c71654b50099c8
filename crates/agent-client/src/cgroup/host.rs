//! Where a host keeps its controllers.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use super::{Controller, Version, delegated::Delegated};

/// The control groups of a host, as they are mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    version: Version,
    mounts: BTreeMap<Controller, PathBuf>,
    delegated: bool,
}

impl Host {
    /// Looks at this host's mounts. What this process may not write in is not there.
    pub fn find() -> io::Result<Self> {
        let mut host = Self::seen()?;
        host.mounts.retain(|_, mount| access(&**mount, Access::WRITE_OK).is_ok());
        if host.mounts.is_empty() {
            // What this user may not do everywhere it may do in a place of its own.
            return Ok(Delegated::find().map_or(host, Self::delegated));
        }
        Ok(host)
    }

    /// The same, with what may only be read.
    pub(super) fn seen() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/self/mountinfo")?;
        Ok(Self::of(&text, |mount| {
            fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default()
        }))
    }

    fn delegated(place: Delegated) -> Self {
        Self { delegated: true, ..Self::v2(place.directory) }
    }

    /// The directory that was given to this user, if groups are made there: whoever looks for them
    /// later may be somewhere else.
    pub fn place(&self) -> Option<&Path> {
        if self.delegated { self.mount(Controller::Memory) } else { None }
    }

    /// Makes room for groups: where they are to have limits there must be no process, and in a
    /// place given to this user there is this one.
    pub fn settle(&self) -> io::Result<()> {
        self.place().map_or(Ok(()), |directory| Delegated { directory: directory.into() }.leave())
    }

    /// Reads `mountinfo`; `controllers` tells what a version 2 mount offers.
    ///
    /// Version 2 is used if it has all of memory, pids and cpu: where version 1 has taken one away
    /// from it (a hybrid host), version 1 has them all.
    fn of(mountinfo: &str, controllers: impl Fn(&Path) -> String) -> Self {
        let mut v1 = BTreeMap::new();
        for line in mountinfo.lines() {
            let Some((before, after)) = line.split_once(" - ") else { continue };
            let Some(mount) = before.split(' ').nth(4).map(PathBuf::from) else { continue };
            let mut after = after.split(' ');
            match (after.next(), after.next(), after.next()) {
                (Some("cgroup2"), ..) => {
                    let offered = controllers(&mount);
                    let has = |name| offered.split_whitespace().any(|word| word == name);
                    if ["memory", "pids", "cpu"].into_iter().all(has) {
                        return Self::v2(mount);
                    }
                }
                (Some("cgroup"), _, Some(options)) => {
                    for option in options.split(',') {
                        if let Some(controller) = named(option) {
                            v1.entry(controller).or_insert_with(|| mount.clone());
                        }
                    }
                }
                _ => {}
            }
        }
        Self { version: Version::V1, mounts: v1, delegated: false }
    }

    /// A host whose version 2 tree is mounted there, with every controller.
    pub fn v2(mount: impl Into<PathBuf>) -> Self {
        let mount = mount.into();
        let all = [Controller::Cpu, Controller::CpuTime, Controller::Memory, Controller::Pids];
        Self {
            version: Version::V2,
            mounts: all.into_iter().map(|controller| (controller, mount.clone())).collect(),
            delegated: false,
        }
    }

    /// A host whose version 1 controllers are mounted there.
    pub fn v1(mounts: impl IntoIterator<Item = (Controller, PathBuf)>) -> Self {
        Self { version: Version::V1, mounts: mounts.into_iter().collect(), delegated: false }
    }

    pub fn version(&self) -> Version {
        self.version
    }

    pub fn has(&self, controller: Controller) -> bool {
        self.mounts.contains_key(&controller)
    }

    /// Where groups of this controller are.
    pub fn mount(&self, controller: Controller) -> Option<&Path> {
        self.mounts.get(&controller).map(PathBuf::as_path)
    }
}

fn named(option: &str) -> Option<Controller> {
    match option {
        "cpu" => Some(Controller::Cpu),
        "cpuacct" => Some(Controller::CpuTime),
        "memory" => Some(Controller::Memory),
        "pids" => Some(Controller::Pids),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    #[test]
    fn a_hybrid_host_is_version_1_with_what_is_mounted() {
        let host = Host::of(HYBRID, |_| "hugetlb pids".to_owned());
        assert_eq!(host.version(), Version::V1);
        assert_eq!(host.mount(Controller::CpuTime), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct")));
        assert!(host.has(Controller::Memory) && !host.has(Controller::Pids));
    }

    #[test]
    fn a_unified_host_is_version_2() {
        let text = "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let host = Host::of(text, |_| "cpuset cpu io memory pids".to_owned());
        assert_eq!(host.version(), Version::V2);
        assert_eq!(host.mount(Controller::Pids), Some(Path::new("/sys/fs/cgroup")));
    }

    #[test]
    fn a_host_without_groups_has_no_controller() {
        let host = Host::of("21 1 0:20 / /proc rw - proc proc rw\n", |_| String::new());
        assert!(!host.has(Controller::Memory));
    }
}
