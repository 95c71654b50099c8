//! What an operator, or a test, chooses.

use std::path::PathBuf;

use atoll_engine::SandboxId;
use atoll_launcher::Weakness;

/// How the engine works on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where each sandbox has a directory, readable by the daemon's user only.
    pub state_dir: PathBuf,
    /// What no sandbox may be shown, besides the state directory: a mount of one of these, or of
    /// what is in it, is refused, and in a mount of what holds one an empty directory is in its
    /// place.
    pub private: Vec<PathBuf>,
    /// The file whose locks say which ranges of ids are taken: one for all daemons of a host.
    pub ids: PathBuf,
    /// The same for an ordinary user who has ids besides its own (`/etc/subuid`): one for all
    /// daemons of that user. None: such ids are not used.
    pub lent_ids: Option<PathBuf>,
    /// Walls left out, for tests that must see a check fail. Not to be read from any file.
    pub weaknesses: Vec<Weakness>,
}

impl Config {
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            private: Vec::new(),
            ids: PathBuf::from("/run/atoll/ids"),
            lent_ids: None,
            weaknesses: Vec::new(),
        }
    }

    /// Names a sandbox's control groups: apart from those of another Atoll on the same host, and
    /// without the sandbox's id, for guests can read the name.
    pub(crate) fn group(&self, id: &SandboxId) -> String {
        let instance = fnv(self.state_dir.as_os_str().as_encoded_bytes());
        format!("{instance:016x}.{:016x}", fnv(id.as_str().as_bytes()))
    }
}

/// A hash that is the same in every build: names on the host are made of it.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
