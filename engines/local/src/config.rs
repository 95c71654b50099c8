//! What the engine is told.

use std::path::PathBuf;

/// Where programs are looked for unless told otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Holds one directory for each sandbox; made if it is not there.
    pub state_dir: PathBuf,
    /// `PATH` of every process in a sandbox.
    pub path: String,
}

impl Config {
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self { state_dir: state_dir.into(), path: PATH.to_owned() }
    }
}
