//! What is written about a sandbox before and after it is made.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use atoll_engine::Limits;
use serde::{Deserialize, Serialize};

use crate::process::Identity;

const NAME: &str = "record.json";

/// Begins as an intent, without a first process, before anything else is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The daemon that made it.
    pub(crate) owner: Option<Identity>,
    pub(crate) limits: Limits,
    /// The sandbox's first process, once there is one.
    pub(crate) init: Option<Identity>,
    /// Where its control groups are, if that depends on where the daemon was started.
    #[serde(default)]
    pub(crate) groups: Option<PathBuf>,
}

impl Record {
    /// Replaces the record in one step.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let new = directory.join("record.new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(new, directory.join(NAME))
    }

    /// None if there is none that can be read.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.join(NAME)).ok()?).ok()
    }
}
