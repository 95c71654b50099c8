//! What a destroyed sandbox must have left: nothing (I4).

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use atoll_engine::SandboxId;

use crate::{check::claim, run::eventually, subject::Subject};

/// How a sandbox can be recognised on the host.
#[derive(Debug, Clone)]
pub struct Traces {
    subject: Arc<dyn Subject>,
    id: SandboxId,
    /// What its control groups and mounts are called.
    names: Vec<String>,
    /// The host's ids of its users; none if they could not be learnt, or are not its own.
    ids: Option<std::ops::Range<u32>>,
    /// Its world of process numbers.
    processes: Option<PathBuf>,
}

impl Traces {
    /// Learns from a living sandbox what to look for when it is gone.
    pub fn of(subject: &Arc<dyn Subject>, id: &SandboxId) -> Self {
        let first = subject.first_process(id);
        Self {
            subject: Arc::clone(subject),
            id: id.clone(),
            names: subject.names(id),
            ids: first.and_then(ids),
            processes: first.and_then(|first| world_of(&first.to_string())),
        }
    }

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
        left.extend(self.subject.left(&self.names));
        left
    }

    fn owns(&self, id: u32) -> bool {
        self.ids.as_ref().is_some_and(|ids| ids.contains(&id))
    }

    fn is_named(&self, text: &str) -> bool {
        self.names.iter().any(|name| text.contains(name))
    }

    /// Processes of its users, or in its world, that have not ended.
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
                let inside =
                    self.processes.is_some() && world_of(&process.to_string()) == self.processes;
                ((self.owns(user) || inside) && state != "Z" && state != "X")
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
                if self.is_named(&entry.file_name().to_string_lossy()) {
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
            .filter(|line| self.is_named(line))
            .map(|line| format!("mount {line}"))
            .collect()
    }

    /// Files in the engine's directory with its name.
    fn state(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut waiting = vec![self.subject.directory().to_owned()];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().contains(self.id.as_str()) {
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

/// The host's ids of a sandbox's users, as its first process has them, if they are its own.
fn ids(first: u64) -> Option<std::ops::Range<u32>> {
    let map = fs::read_to_string(format!("/proc/{first}/uid_map")).ok()?;
    let words: Vec<u32> = map.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match words[..] {
        [0, first, count] if first > 0 => Some(first..first.checked_add(count)?),
        _ => None,
    }
}

/// The world of numbers a process is counted in, if this program may ask.
pub(crate) fn world_of(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/pid")).ok()
}

/// The entries of a directory whose names are numbers.
fn numbers(directory: &str) -> impl Iterator<Item = u32> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
