//! What a server's sandboxes have on the host.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use atoll_types::id::SandboxId;

/// How everything of one server's sandboxes is told from everything else on the host.
#[derive(Debug)]
pub struct Census {
    /// What the names of their control groups begin with.
    groups: String,
    data: PathBuf,
}

impl Census {
    /// Learns from one of its living sandboxes what the server calls its own.
    ///
    /// Fails if it would not see that sandbox: a look that finds nothing proves nothing then.
    pub fn learn(data: &Path, sandbox: &SandboxId) -> Result<Self> {
        let record = data.join("engines/namespace").join(sandbox.as_str()).join("record.json");
        let record: serde_json::Value = serde_json::from_str(&fs::read_to_string(record)?)?;
        let pid = record["init"]["pid"].as_u64().context("the record names its first process")?;
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let name = groups.split('\n').find_map(|line| line.split_once(":/atoll/"));
        let name = name.and_then(|(_, name)| name.split_once('.')).context("it is in a group")?.0;
        let census = Self { groups: format!("{name}."), data: data.to_path_buf() };

        let seen = census.left()?;
        for kind in ["process", "group", "file"] {
            ensure!(seen.iter().any(|line| line.starts_with(kind)), "no {kind} in {seen:?}");
        }
        Ok(census)
    }

    /// Everything that is there now: processes, control groups, mounts, files.
    pub fn left(&self) -> Result<Vec<String>> {
        let mut left = self.processes()?;
        let mut groups = Vec::new();
        self.groups_beneath(Path::new("/sys/fs/cgroup"), &mut groups)?;
        left.extend(groups);
        for path in entries(&self.data.join("engines/namespace"))? {
            left.push(format!("file {}", path.display()));
        }
        let data = self.data.to_string_lossy();
        for line in fs::read_to_string("/proc/self/mountinfo")?.lines() {
            if line.contains(&*data) {
                left.push(format!("mount {line}"));
            }
        }
        Ok(left)
    }

    /// The numbers of processes in the groups.
    pub fn pids(&self) -> Result<Vec<i32>> {
        let mine = format!("/atoll/{}", self.groups);
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
            let groups = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
            if groups.contains(&mine) {
                found.push(pid);
            }
        }
        Ok(found)
    }

    fn processes(&self) -> Result<Vec<String>> {
        Ok(self.pids()?.into_iter().map(|pid| format!("process {pid}")).collect())
    }

    fn groups_beneath(&self, top: &Path, found: &mut Vec<String>) -> Result<()> {
        for path in entries(top)?.into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(&self.groups) {
                found.push(format!("group {}", path.display()));
            }
            self.groups_beneath(&path, found)?;
        }
        Ok(())
    }
}

/// What a directory holds; nothing of one that went away meanwhile.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
