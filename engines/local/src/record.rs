//! What is written down about a sandbox, for whoever comes after this daemon.

use std::{fs, io, path::Path};

use atoll_engine::Limits;
use serde::{Deserialize, Serialize};

use crate::process::{Identity, boot_id};

const FILE: &str = "record.json";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// The daemon that made it.
    owner: Option<Identity>,
    /// None until it runs.
    agent: Option<Identity>,
    boot_id: String,
    limits: Limits,
}

impl Record {
    /// A sandbox that this process is about to make.
    pub(crate) fn intended(limits: Limits) -> io::Result<Self> {
        Ok(Self { owner: Identity::own(), agent: None, boot_id: boot_id()?, limits })
    }

    pub(crate) fn running(self, agent: Identity) -> Self {
        Self { agent: Some(agent), ..self }
    }

    /// The agent, if it was started since this host was.
    pub(crate) fn agent(&self) -> Option<Identity> {
        self.agent.filter(|_| boot_id().is_ok_and(|now| now == self.boot_id))
    }

    /// Those it was made with.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// None if there is none that can be understood.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.join(FILE)).ok()?).ok()
    }

    /// In one step: a reader sees the old one or the new one.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let unfinished = directory.join("record.json.new");
        fs::write(&unfinished, serde_json::to_vec(self)?)?;
        fs::rename(unfinished, directory.join(FILE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let record =
            Record::intended(Limits::default()).unwrap().running(Identity { pid: 7, started: 8 });

        record.write(directory.path()).unwrap();

        assert_eq!(Record::read(directory.path()), Some(record));
    }

    #[test]
    fn an_agent_of_an_earlier_start_of_the_host_is_none() {
        let record =
            Record { boot_id: "earlier".into(), ..Record::intended(Limits::default()).unwrap() };

        assert_eq!(record.running(Identity { pid: 1, started: 0 }).agent(), None);
    }

    #[test]
    fn half_a_record_is_none() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "{\"owner\":").unwrap();

        assert_eq!(Record::read(directory.path()), None);
    }
}
