//! A server of the test's own, which may be ended in any way.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use atoll_client::Client;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

/// `atoll serve` on a data directory that outlives it.
#[derive(Debug)]
pub struct Daemon {
    process: Child,
    data: TempDir,
    /// Variables it is started with.
    settings: Vec<(String, String)>,
}

impl Daemon {
    pub async fn start() -> Result<Self> {
        let data = tempfile::Builder::new().prefix("atoll-e2e").tempdir()?;
        Self::start_with(data, Vec::new()).await
    }

    /// A server on these data, with these settings as its variables.
    pub async fn start_with(data: TempDir, settings: Vec<(String, String)>) -> Result<Self> {
        let process = Command::new(program()?)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path())
            .envs(settings.clone())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let daemon = Self { process, data, settings };
        let deadline = Instant::now() + Duration::from_mins(1);
        while daemon.client().health().await.is_err() {
            if Instant::now() > deadline {
                bail!("the server did not answer in a minute");
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(daemon)
    }

    /// A client of its private socket.
    pub fn client(&self) -> Client {
        Client::unix(self.data.path().join("daemon.sock"))
    }

    pub fn data(&self) -> &Path {
        self.data.path()
    }

    pub fn pid(&self) -> Result<u32> {
        self.process.id().context("the server ended")
    }

    /// Ends it as a crash would, and starts another one on what it left.
    pub async fn crash_and_restart(self) -> Result<Self> {
        self.crash_then(|| Ok(())).await
    }

    /// The same, with something else happening while no server runs.
    pub async fn crash_then(mut self, meanwhile: impl FnOnce() -> Result<()>) -> Result<Self> {
        self.process.kill().await?;
        meanwhile()?;
        Self::start_with(self.data, self.settings).await
    }

    /// Ends every session and the server.
    pub async fn stop(mut self) -> Result<TempDir> {
        let client = self.client();
        for session in client.sessions(&atoll_client::Filter::default()).await?.sessions {
            // One that ended meanwhile is as good.
            let _ = client.delete_session(&session.session_id, None).await;
        }
        self.process.kill().await?;
        Ok(self.data)
    }
}

/// The program beside which the tests were built.
fn program() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let directory = test.ancestors().nth(2).context("tests are in target/PROFILE/deps")?;
    let program = directory.join("atoll");
    if !program.exists() {
        bail!("{} is not built: cargo build -p atoll-cli", program.display());
    }
    Ok(program)
}
