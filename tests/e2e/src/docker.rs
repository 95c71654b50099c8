//! A Docker daemon of the test's own, and what sandboxes have there.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, ensure};
use atoll_test_dockerd::Dockerd;

use crate::Daemon;

/// How long what is about to go may still be seen.
const SOON: Duration = Duration::from_mins(1);

/// A Docker daemon, and where a server that uses it keeps its data.
#[derive(Debug)]
pub struct Harbour {
    pub dockerd: Dockerd,
}

impl Harbour {
    pub fn open() -> Result<Self> {
        let dockerd = Dockerd::start().map_err(|missing| anyhow!("{missing}"))?;
        let harbour = Self { dockerd };
        ensure!(harbour.seen(None)?.is_empty(), "not empty: {:?}", harbour.seen(None)?);
        Ok(harbour)
    }

    /// A server whose sandboxes are containers of this daemon.
    pub async fn server(&self) -> Result<Daemon> {
        let data = tempfile::Builder::new().prefix("atoll-e2e").tempdir()?;
        let environments = data.path().join("environments");
        fs::create_dir(&environments)?;
        let described = format!("description: x\nroots: {{docker: {}}}\n", self.dockerd.image());
        fs::write(environments.join("e2e.yaml"), described)?;
        let settings = [
            ("ATOLL_DOCKER_HOST", self.dockerd.host()),
            ("ATOLL_ENGINE", "docker".to_owned()),
            ("ATOLL_ENVIRONMENT", "e2e".to_owned()),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        Daemon::start_with(data, settings.to_vec()).await
    }

    /// Fails unless a living sandbox would be seen: a look that finds nothing proves nothing then.
    pub fn would_see(&self, data: &Path) -> Result<()> {
        let seen = self.seen(Some(data))?;
        for kind in ["container", "process", "group", "mount", "file"] {
            ensure!(seen.iter().any(|line| line.starts_with(kind)), "no {kind} in {seen:?}");
        }
        Ok(())
    }

    /// Fails unless nothing of any sandbox is left, or soon.
    pub async fn nothing_left(&self, data: &Path) -> Result<()> {
        let deadline = Instant::now() + SOON;
        loop {
            let left = self.seen(Some(data))?;
            if left.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "left: {left:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Containers, volumes, networks, processes, control groups, mounts and files of sandboxes.
    fn seen(&self, data: Option<&Path>) -> Result<Vec<String>> {
        let mut seen = Vec::new();
        let mut add = |kind: &str, names: Vec<String>| {
            seen.extend(names.into_iter().map(|name| format!("{kind} {name}")));
        };
        add("container", self.dockerd.containers());
        add("volume", self.dockerd.volumes());
        let usual = ["none", "host", "bridge"];
        let networks = self.dockerd.networks().into_iter();
        add("network", networks.filter(|name| !usual.contains(&name.as_str())).collect());
        add("process", self.processes()?);
        add("group", self.groups());
        add("mount", self.mounts()?);
        if let Some(data) = data {
            let entries = fs::read_dir(data.join("engines/docker")).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            // What the engine keeps for itself begins with a dot.
            add("file", names.filter(|name| !name.starts_with('.')).collect());
        }
        Ok(seen)
    }

    fn group(&self) -> String {
        let socket = self.dockerd.socket();
        let place = socket.parent().and_then(Path::file_name).unwrap_or_default();
        place.to_string_lossy().into_owned()
    }

    /// Whatever the daemon started and is neither itself nor its containerd.
    fn processes(&self) -> Result<Vec<String>> {
        let own = format!("/{}/", self.group());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let name = read("comm").trim().to_owned();
            let keeper = ["dockerd", "containerd"].contains(&name.as_str());
            if !keeper && read("cgroup").contains(&own) {
                found.push(format!("{} {name}", entry.file_name().to_string_lossy()));
            }
        }
        Ok(found)
    }

    fn groups(&self) -> Vec<String> {
        let top = Path::new("/sys/fs/cgroup");
        let own = format!("{}/containers", self.group());
        let hierarchies = entries(top).into_iter().chain([top.to_owned()]);
        let below = hierarchies.flat_map(|hierarchy| entries(&hierarchy.join(&own)));
        let directories = below.filter(|path| path.is_dir());
        directories.map(|path| path.display().to_string()).collect()
    }

    fn mounts(&self) -> Result<Vec<String>> {
        let places = [self.dockerd.data(), self.dockerd.socket()];
        let table = fs::read_to_string("/proc/self/mountinfo")?;
        let points = table.lines().filter_map(|line| line.split(' ').nth(4));
        let own = points.filter(|point| {
            let point = Path::new(point);
            // The daemon mounts its own data upon itself.
            places.iter().any(|place| {
                let place = if place.is_dir() { Some(place.as_path()) } else { place.parent() };
                place.is_some_and(|place| point.starts_with(place) && point != place)
            })
        });
        Ok(own.map(str::to_owned).collect())
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
