//! What a destroyed sandbox must have left: nothing (I4).

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::{check::claim, run::eventually};

/// How a sandbox can be recognised on the host.
#[derive(Debug, Clone)]
pub struct Traces {
    pub id: String,
    /// The host's ids of its users; none if they could not be learnt.
    pub ids: Option<std::ops::Range<u32>>,
    pub state: PathBuf,
}

impl Traces {
    /// Fails unless nothing of the sandbox is left, or soon.
    pub async fn gone(&self) -> Result<()> {
        let mut left = Vec::new();
        let gone = eventually(|| {
            left = self.left();
            let empty = left.is_empty();
            async move { Ok(empty) }
        })
        .await?;
        claim(gone, || format!("I4: left of the sandbox: {left:?}"))
    }

    /// Everything that can be found, by name.
    fn left(&self) -> Vec<String> {
        let mut left = self.processes();
        left.extend(self.control_groups());
        left.extend(self.mounts());
        left.extend(self.state());
        left.extend(self.shared_memory());
        left.extend(self.system_v());
        left
    }

    fn owns(&self, id: u32) -> bool {
        self.ids.as_ref().is_some_and(|ids| ids.contains(&id))
    }

    /// Processes of its users that have not ended.
    fn processes(&self) -> Vec<String> {
        numbers("/proc")
            .filter_map(|process| {
                let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
                let field = |name: &str| {
                    let line = status.lines().find(|line| line.starts_with(name))?;
                    line.split_whitespace().nth(1).map(str::to_owned)
                };
                let user: u32 = field("Uid:")?.parse().ok()?;
                let state = field("State:")?;
                (self.owns(user) && state != "Z" && state != "X")
                    .then(|| format!("process {process} ({:?}, {state})", field("Name:")))
            })
            .collect()
    }

    /// Control groups with its name, in any hierarchy.
    fn control_groups(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut waiting = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
        while let Some((directory, depth)) = waiting.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                if entry.file_name().to_string_lossy().contains(&self.id) {
                    found.push(format!("control group {}", entry.path().display()));
                } else if depth < 6 {
                    waiting.push((entry.path(), depth + 1));
                }
            }
        }
        found
    }

    /// Mounts of the host that name it.
    fn mounts(&self) -> Vec<String> {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        table
            .lines()
            .filter(|line| line.contains(&self.id))
            .map(|line| format!("mount {line}"))
            .collect()
    }

    /// Files in the engine's directory with its name.
    fn state(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut waiting = vec![self.state.clone()];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().contains(&self.id) {
                    found.push(format!("file {}", entry.path().display()));
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(entry.path());
                }
            }
        }
        found
    }

    /// Files of its users in the host's shared memory and temporary directories.
    fn shared_memory(&self) -> Vec<String> {
        ["/dev/shm", "/tmp", "/var/tmp", "/dev/mqueue"]
            .iter()
            .flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten())
            .filter(|entry| {
                let metadata = fs::symlink_metadata(entry.path());
                metadata.is_ok_and(|metadata| self.owns(metadata.uid()))
            })
            .map(|entry| format!("file {}", entry.path().display()))
            .collect()
    }

    /// The host's System V objects of its users.
    fn system_v(&self) -> Vec<String> {
        ["shm", "sem", "msg"]
            .iter()
            .flat_map(|kind| {
                let path = Path::new("/proc/sysvipc").join(kind);
                let table = fs::read_to_string(path).unwrap_or_default();
                let owned = |line: &&str| {
                    line.split_whitespace()
                        .filter_map(|word| word.parse().ok())
                        .any(|number| self.owns(number))
                };
                let found: Vec<String> = table
                    .lines()
                    .skip(1)
                    .filter(owned)
                    .map(|line| format!("{kind} {line}"))
                    .collect();
                found
            })
            .collect()
    }
}

/// The entries of a directory whose names are numbers.
fn numbers(directory: &str) -> impl Iterator<Item = u32> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
