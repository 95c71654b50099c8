//! What a container tells about itself: whose it is, and what it was made with.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

use atoll_engine::{Limits, SandboxId};

/// The Atoll it belongs to.
pub(crate) const INSTANCE: &str = "dev.atoll.instance";
const SANDBOX: &str = "dev.atoll.sandbox";
const LIMITS: &str = "dev.atoll.limits";
/// The server that made it: pid, start time and boot.
const OWNER: &str = "dev.atoll.owner";

/// One Atoll among those that may share a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance(String);

impl Instance {
    /// The instance whose state that directory is; none before its first sandbox.
    pub(crate) fn read(state: &Path) -> io::Result<Option<Self>> {
        match fs::read_to_string(state.join(".instance")) {
            Ok(name) if name.len() == 16 => Ok(Some(Self(name))),
            Ok(_) => Err(io::Error::other("`.instance` is damaged")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same; begun if there is none.
    pub(crate) fn begin(state: &Path) -> io::Result<Self> {
        if let Some(instance) = Self::read(state)? {
            return Ok(instance);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(state)?;
        let name = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        // Whole or not at all: another server may be reading.
        let new = state.join(format!(".instance-{name:016x}"));
        let mut file = fs::File::create(&new)?;
        file.write_all(format!("{name:016x}").as_bytes())?;
        file.sync_all()?;
        let linked = fs::hard_link(&new, state.join(".instance"));
        fs::remove_file(&new)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Self::read(state)?.ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The container's name: no image can choose that.
    pub(crate) fn container(&self, id: &SandboxId) -> String {
        format!("atoll-{}-{id}", self.0)
    }

    /// The sandbox a container of this name is, if it is one of this instance's.
    pub(crate) fn sandbox(&self, container: &str) -> Option<SandboxId> {
        let name = container.trim_start_matches('/');
        name.strip_prefix("atoll-")?.strip_prefix(&self.0)?.strip_prefix('-')?.parse().ok()
    }

    pub(crate) fn labels(&self, id: &SandboxId, limits: &Limits) -> HashMap<String, String> {
        HashMap::from([
            (INSTANCE.to_owned(), self.0.clone()),
            (SANDBOX.to_owned(), id.to_string()),
            (LIMITS.to_owned(), serde_json::to_string(limits).unwrap_or_default()),
            (OWNER.to_owned(), owner()),
        ])
    }
}

/// What the sandbox may use, as it was made.
pub(crate) fn limits(labels: &HashMap<String, String>) -> Option<Limits> {
    serde_json::from_str(labels.get(LIMITS)?).ok()
}

fn owner() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may hold anything: count from its end.
    let started = stat.rsplit_once(") ").and_then(|(_, after)| after.split(' ').nth(19));
    format!("{} {} {}", std::process::id(), started.unwrap_or_default(), boot.trim())
}

#[cfg(test)]
mod tests {
    use atoll_types::quantity::Size;

    use super::*;

    #[test]
    fn an_instance_stays_the_same() {
        let state = tempfile::tempdir().unwrap();
        let state = state.path().join("docker");
        assert_eq!(Instance::read(&state).unwrap(), None);

        let instance = Instance::begin(&state).unwrap();

        assert_eq!(Instance::begin(&state).unwrap(), instance);
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
    }

    #[test]
    fn a_name_leads_back_to_its_sandbox_and_no_other_name_does() {
        let instance = Instance("0123456789abcdef".to_owned());
        let id: SandboxId = "sbx-1".parse().unwrap();

        assert_eq!(instance.sandbox(&format!("/{}", instance.container(&id))), Some(id));
        for name in ["/web", "/atoll-0123456789abcdee-sbx-1", "/atoll-0123456789abcdef", "/atoll-"]
        {
            assert_eq!(instance.sandbox(name), None, "{name}");
        }
    }

    #[test]
    fn limits_are_read_back() {
        let limits_made =
            Limits { memory: Some(Size(64 << 20)), pids: Some(7), ..Limits::default() };
        let id = "sbx-1".parse().unwrap();

        let labels = Instance("x".to_owned()).labels(&id, &limits_made);

        assert_eq!(limits(&labels), Some(limits_made));
        assert_eq!(limits(&HashMap::new()), None);
    }

    #[test]
    fn the_owner_is_this_process_at_its_start() {
        let owner = owner();
        let words: Vec<_> = owner.split(' ').collect();

        assert_eq!(words.len(), 3);
        assert_eq!(words[0], std::process::id().to_string());
        assert!(words[1].parse::<u64>().is_ok(), "{owner}");
    }
}
