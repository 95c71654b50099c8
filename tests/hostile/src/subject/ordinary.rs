//! The `namespace` engine as an ordinary user, who has no control group.

use std::{fs, path::Path, sync::Arc};

use anyhow::Result;
use atoll_engine::{Engine, Limits, SandboxId, Spec};

use super::{Namespace, Subject, Weakness};
use crate::census::world_of;

/// Numbers that the engine keeps for the agent and its keepers: no guest gets one.
const RESERVED: u64 = 300;

/// The same engine, which finds out itself that it is nobody's.
#[derive(Debug)]
pub struct Ordinary(Namespace);

impl Ordinary {
    pub fn new() -> Result<Self> {
        Ok(Self(Namespace::new()?))
    }
}

impl Subject for Ordinary {
    fn name(&self) -> &'static str {
        "ordinary"
    }

    fn missing(&self) -> Option<String> {
        if rustix::process::geteuid().is_root() {
            return Some("this is root".to_owned());
        }
        self.0.probed()
    }

    fn engine(&self, directory: &Path, weaknesses: &[Weakness]) -> Result<Arc<dyn Engine>> {
        self.0.engine(directory, weaknesses)
    }

    fn directory(&self) -> &Path {
        self.0.directory()
    }

    /// Without what needs a control group. Checks of just that do not apply.
    fn complete(&self, spec: Spec) -> Spec {
        let limits = Limits { memory: None, cpus: None, ..spec.limits };
        Spec { limits, ..spec }
    }

    fn settings(&self, settings: atoll_service::Settings) -> atoll_service::Settings {
        let default_limits = Limits { memory: None, cpus: None, ..settings.default_limits };
        atoll_service::Settings { default_limits, ..settings }
    }

    fn first_process(&self, id: &SandboxId) -> Option<u64> {
        self.0.first_process(id)
    }

    /// The kernel's limit counts the agent's processes too, for which room is made.
    fn slack(&self) -> u64 {
        8
    }

    /// Those in its world of numbers whose number is not one of the agent's.
    fn guests(&self, id: &SandboxId) -> Option<u64> {
        let world = world_of(&self.first_process(id)?.to_string())?;
        let mut count = 0;
        for entry in fs::read_dir("/proc").ok()?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.parse::<u32>().is_err() || world_of(&name).as_ref() != Some(&world) {
                continue;
            }
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let inside = line.and_then(|line| line.split_whitespace().last()?.parse().ok());
            if inside.is_some_and(|inside: u64| inside >= RESERVED) {
                let threads = fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count);
                count += threads as u64;
            }
        }
        Some(count)
    }
}
