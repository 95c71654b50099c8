//! Control groups: what the kernel counts and limits for a set of processes, on version 1 and 2.
//!
//! Every engine on Linux needs the same few things: make a group with limits, let processes join
//! it, read its figures, end whatever is in it and remove it. The two versions differ in file
//! names ([`v1`], [`v2`]) and in where controllers are ([`Host`]); nothing else knows the version.
//!
//! Ending on version 1 needs no freezer: with `pids.max` at zero nothing in the group can fork any
//! more, so killing what is listed ends, fork bomb or not.

mod delegated;
mod host;
mod kill;
mod of;
mod v1;
mod v2;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

pub use host::Host;

use crate::Counters;

/// How long a group may take to empty after its processes were killed.
const EMPTY: Duration = Duration::from_secs(20);

/// A controller this crate uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    Cpu,
    /// Processor time used; part of the kernel's core on version 2.
    CpuTime,
    Memory,
    Pids,
}

/// Which of the kernel's two interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// What the processes of a group may use together; none is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Bytes, of swap too.
    pub memory: Option<u64>,
    pub pids: Option<u32>,
    /// Processors' worth of time.
    pub cpus: Option<f64>,
}

/// One group, made or not: a directory on version 2, one of each controller on version 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    version: Version,
    directories: BTreeMap<Controller, PathBuf>,
}

impl Group {
    /// Names the group `name`, a relative path, under those of `controllers` that `host` has.
    pub fn new(host: &Host, name: &Path, controllers: &[Controller]) -> Self {
        let directories = controllers
            .iter()
            .filter_map(|controller| Some((*controller, host.mount(*controller)?.join(name))))
            .collect();
        Self { version: host.version(), directories }
    }

    /// Makes the group and sets its limits.
    pub fn create(&self, limits: &Limits) -> io::Result<()> {
        for directory in self.each() {
            let parent = directory.parent().unwrap_or(directory);
            fs::create_dir_all(parent)?;
            if self.version == Version::V2 {
                v2::delegate(parent)?;
            }
            fs::create_dir(directory)?;
        }
        match self.version {
            Version::V1 => v1::limit(&self.directories, limits),
            Version::V2 => v2::limit(&self.directories, limits),
        }
    }

    /// Files in which a process with one thread writes `0` to join.
    ///
    /// On version 1 these are `tasks`, not `cgroup.procs`: moving the writing thread alone needs no
    /// lock over all of the system's forks, and takes 0.1 ms instead of 8.
    pub fn doors(&self) -> io::Result<Vec<File>> {
        let name = match self.version {
            Version::V1 => "tasks",
            Version::V2 => "cgroup.procs",
        };
        self.each().map(|path| OpenOptions::new().write(true).open(path.join(name))).collect()
    }

    /// The figures of the group; none of what cannot be read.
    pub fn counters(&self) -> Counters {
        match self.version {
            Version::V1 => v1::counters(&self.directories),
            Version::V2 => v2::counters(&self.directories),
        }
    }

    /// Ends every process in the group and removes it. Of a group that is not there: does nothing.
    ///
    /// Waits, without a runtime, until the last process is gone.
    pub fn remove(&self) -> io::Result<()> {
        let deadline = Instant::now() + EMPTY;
        for directory in self.in_order_of_ending() {
            let mut pause = Duration::from_micros(200);
            loop {
                match fs::remove_dir(directory) {
                    Ok(()) => break,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                        if Instant::now() > deadline {
                            return Err(error);
                        }
                        kill::all(directory)?;
                        thread::sleep(pause);
                        pause = (pause * 2).min(Duration::from_millis(20));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Its directories, first the one that keeps it from growing: only then does killing what the
    /// others list come to an end.
    fn in_order_of_ending(&self) -> impl Iterator<Item = &Path> {
        let first = self.directories.get(&Controller::Pids).map(PathBuf::as_path);
        first.into_iter().chain(self.each().filter(move |directory| Some(*directory) != first))
    }

    /// Its directories, each once: version 1 may mount two controllers together.
    fn each(&self) -> impl Iterator<Item = &Path> {
        self.directories.values().map(PathBuf::as_path).collect::<BTreeSet<_>>().into_iter()
    }
}

/// A file's content as one number.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number after `key` in a file of `key number` lines.
fn keyed(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// A part of a period of 100 ms, as the scheduler takes it: at least its minimum of 1 ms.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn quota_us(cpus: f64) -> u64 {
    (cpus * 100_000.0).clamp(1_000.0, 1e12) as u64
}
