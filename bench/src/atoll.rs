//! A server of its own for the measurements, and what is asked of it.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use atoll_client::{Client, Trust};
use atoll_types::{
    execution::{CommandLine, ExecuteRequest, OneShotRequest},
    id::SessionId,
    key::CreateKey,
    session::CreateSession,
};
use serde::Serialize;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::subject::{Subject, Way};

/// A running `atoll serve` with its own data directory.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    data: TempDir,
    client: Client,
    start: Duration,
}

/// What Atoll holds while nobody uses it.
#[derive(Debug, Serialize)]
pub(crate) struct Footprint {
    pub(crate) daemon_start_ms: f64,
    pub(crate) idle_daemon_mib: f64,
    pub(crate) idle_session_mib: f64,
    pub(crate) idle_sessions: usize,
}

/// One kind of request.
#[derive(Debug)]
pub(crate) enum Call {
    /// Until the session is ready; it is deleted off the clock.
    Session(Client),
    /// A fresh sandbox, the program, its result, the sandbox gone.
    OneShot(Client, OneShotRequest),
    /// The program in a session that is there.
    Execute(Client, SessionId, ExecuteRequest),
}

impl Call {
    pub(crate) async fn once(&self) -> Result<Duration> {
        let start = Instant::now();
        match self {
            Self::Session(client) => {
                let session = client.create_session(&CreateSession::default()).await?;
                let time = start.elapsed();
                client.delete_session(&session.session_id, None).await?;
                return Ok(time);
            }
            Self::OneShot(client, request) => {
                let result = client.execute_once(request).await?;
                ensure!(result.stdout.contains("hello"), "{result:?}");
            }
            Self::Execute(client, session, request) => {
                let result = client.execute(session, request).await?;
                ensure!(result.stdout.contains("hello"), "{result:?}");
            }
        }
        Ok(start.elapsed())
    }
}

impl Server {
    pub(crate) async fn start(program: &Path) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let begin = Instant::now();
        let mut process = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {} (make build)", program.display()))?;
        let output = process.stdout.take().context("its output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).await?;
        let start = begin.elapsed();

        let url = line.split_whitespace().find(|word| word.starts_with("http"));
        let url = url.with_context(|| format!("no address in `{line}`"))?;
        let owner = Client::unix(data.path().join("daemon.sock"));
        let key = owner.create_key(&CreateKey { name: "bench".into(), scopes: None }).await?;
        let client = Client::tcp(url, &key.key, &Trust::default())?;
        Ok(Self { process, data, client, start })
    }

    pub(crate) async fn subjects(
        &self,
        program: &Path,
        python: &Path,
        file: &Path,
    ) -> Result<Vec<Subject>> {
        let session = self.client.create_session(&CreateSession::default()).await?.session_id;
        let code = std::fs::read_to_string(file)?;
        self.client.write_bytes(&session, "hello.py", bytes::Bytes::from(code.clone())).await?;
        let python = python.to_string_lossy().into_owned();

        let one_shot = OneShotRequest {
            code: Some(code),
            language: Some("python".into()),
            ..OneShotRequest::default()
        };
        let execute = ExecuteRequest {
            command: Some(CommandLine::Words(vec![python, "hello.py".into()])),
            ..ExecuteRequest::default()
        };
        let run = [
            program.as_os_str(),
            "run".as_ref(),
            "--data-dir".as_ref(),
            self.data.path().as_ref(),
            file.as_ref(),
        ];
        let call = |name, call| Subject { name, way: Way::Call(Box::new(call)) };
        Ok(vec![
            call("atoll session create", Call::Session(self.client.clone())),
            call("atoll one-shot over REST", Call::OneShot(self.client.clone(), one_shot)),
            call(
                "atoll execute in a session",
                Call::Execute(self.client.clone(), session, execute),
            ),
            Subject::command("atoll run FILE", run, "hello"),
        ])
    }

    /// Memory of the daemon before, and of `count` idle sessions' processes each.
    pub(crate) async fn footprint(&self, count: usize) -> Result<Footprint> {
        let daemon = self.process.id().context("the server ended")?;
        // What sandboxes share is each one's in part: nobody's may be left to share with.
        self.end_sessions().await?;
        let idle_daemon = kib(&format!("/proc/{daemon}/status"), "VmRSS:").context("its memory")?;
        let before = sandboxes()?;
        let mut sessions = Vec::new();
        for _ in 0..count {
            sessions.push(self.client.create_session(&CreateSession::default()).await?.session_id);
        }
        let held = sandboxes()?.saturating_sub(before);
        for session in &sessions {
            self.client.delete_session(session, None).await?;
        }
        Ok(Footprint {
            daemon_start_ms: self.start.as_secs_f64() * 1000.0,
            idle_daemon_mib: mib(idle_daemon),
            idle_session_mib: mib(held) / precise(count),
            idle_sessions: count,
        })
    }

    /// Ends the server and its sessions.
    pub(crate) async fn stop(mut self) -> Result<()> {
        self.end_sessions().await?;
        self.process.kill().await?;
        Ok(())
    }

    async fn end_sessions(&self) -> Result<()> {
        for session in self.client.sessions(&atoll_client::Filter::default()).await?.sessions {
            self.client.delete_session(&session.session_id, None).await?;
        }
        Ok(())
    }
}

/// Proportional set size, in KiB, of every process whose user is none of the host's.
fn sandboxes() -> Result<u64> {
    const FIRST_SANDBOX_UID: u64 = 1 << 20;
    let mut sum = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let path = entry.path();
        let uid = kib(&path.join("status").to_string_lossy(), "Uid:");
        if uid.is_some_and(|uid| uid >= FIRST_SANDBOX_UID) {
            sum += kib(&path.join("smaps_rollup").to_string_lossy(), "Pss:").unwrap_or(0);
        }
    }
    Ok(sum)
}

/// The first number after `field` in a file of /proc.
fn kib(path: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn mib(kib: u64) -> f64 {
    precise(usize::try_from(kib).unwrap_or(usize::MAX)) / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "figures of this size are exact")]
fn precise(count: usize) -> f64 {
    count as f64
}
