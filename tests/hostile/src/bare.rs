//! The probe on the host with nothing around it but an ordinary user: what a check sees where
//! there is no sandbox. Only for sub-commands that do no harm there.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::ground::PATIENCE;

/// Nobody, on every Linux.
const NOBODY: u32 = 65534;

/// Runs the probe as nobody, or, where this program is not root, as its own user.
#[derive(Debug, Clone)]
pub struct Bare {
    pub program: PathBuf,
}

impl Bare {
    /// A command that runs the probe, in its own process group, ended when dropped.
    pub fn command<S: AsRef<str>>(&self, words: &[S]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words.iter().map(AsRef::as_ref))
            .current_dir("/")
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Starts the probe.
    pub fn start<S: AsRef<str>>(&self, words: &[S]) -> Result<Child> {
        self.command(words).spawn().context("the probe starts bare")
    }

    /// Runs the probe and returns its evidence.
    pub async fn probe<S: AsRef<str>>(&self, words: &[S]) -> Result<Value> {
        let output = tokio::time::timeout(PATIENCE, self.command(words).output())
            .await
            .context("the bare probe did not end")??;
        ensure!(output.status.success(), "the bare probe did not tell: {output:?}");
        serde_json::from_slice(&output.stdout).context("the bare probe told no JSON")
    }
}
