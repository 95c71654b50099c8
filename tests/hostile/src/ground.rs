//! One sandbox under test.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use atoll_engine::{Command, Event, Offsets, Outcome, ProcessId, Reason, Sandbox, Stream};
use futures_util::StreamExt as _;
use serde_json::Value;

use crate::{
    check::{Broken, claim},
    run::{SOON, within},
    world::World,
};

/// Where the probe is inside.
pub const PROBE: &str = "/probe/atoll-probe";

/// How long anything may take before the check is a failure. Never a claim about speed.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A sandbox and the world it must leave alone.
#[derive(Debug, Clone)]
pub struct Ground {
    pub sandbox: Arc<dyn Sandbox>,
    pub world: Arc<World>,
    /// Part of a control.
    pub weak: bool,
}

/// What a command wrote and how it ended.
#[derive(Debug, Clone)]
pub struct Ran {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub outcome: Outcome,
}

impl Ran {
    /// A few words for people.
    pub fn told(&self) -> String {
        let tail = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            text.chars().take(600).collect::<String>()
        };
        format!(
            "{:?}\nstdout ({} bytes): {}\nstderr ({} bytes): {}",
            self.outcome,
            self.stdout.len(),
            tail(&self.stdout),
            self.stderr.len(),
            tail(&self.stderr)
        )
    }

    /// Fails the check unless it ended for this reason (I5).
    pub fn ended(&self, reason: Reason) -> Result<()> {
        claim(self.outcome.reason == reason, || format!("not ended as {reason:?}: {}", self.told()))
    }
}

/// A command that runs the probe.
pub fn probe<S: AsRef<str>>(words: &[S]) -> Command {
    let argv = std::iter::once(PROBE.to_owned());
    Command::new(argv.chain(words.iter().map(|word| word.as_ref().to_owned())))
}

impl Ground {
    /// Runs a command to its one end (I5); its output is searched for the host's secrets (I1).
    pub async fn run(&self, command: Command) -> Result<Ran> {
        let process = self.sandbox.start(command).await.context("start")?;
        self.follow(process, Offsets::default()).await
    }

    /// Follows a started process to its one end.
    pub async fn follow(&self, process: ProcessId, from: Offsets) -> Result<Ran> {
        let events = self.sandbox.attach(process, from).await.context("attach")?;
        let ran = tokio::time::timeout(PATIENCE, collect(events))
            .await
            .map_err(|_| Broken(format!("I5: no end after {PATIENCE:?}")))??;
        self.world.canary.absent_from("standard output", &ran.stdout)?;
        self.world.canary.absent_from("standard error", &ran.stderr)?;
        Ok(ran)
    }

    /// Runs the probe and returns its evidence. Not telling any is a failure of the harness.
    pub async fn probe<S: AsRef<str>>(&self, words: &[S]) -> Result<Value> {
        self.told(probe(words)).await
    }

    /// Runs a command that prints evidence.
    pub async fn told(&self, command: Command) -> Result<Value> {
        let ran = self.run(command).await?;
        ensure!(ran.outcome.succeeded(), "the probe did not tell: {}", ran.told());
        let told = serde_json::from_slice(&ran.stdout);
        told.with_context(|| format!("the probe told no JSON: {}", ran.told()))
    }

    /// Runs a line in the shell, which must succeed.
    pub async fn shell(&self, line: &str) -> Result<String> {
        let ran = self.run(Command::shell(line)).await?;
        ensure!(ran.outcome.succeeded(), "`{line}` failed: {}", ran.told());
        Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
    }

    /// Starts a process and returns it with the first line it wrote.
    pub async fn start_and_hear(&self, command: Command) -> Result<(ProcessId, String)> {
        let process = self.sandbox.start(command).await.context("start")?;
        Ok((process, self.hear(process, 0).await?))
    }

    /// Waits for a line that a process writes, the first being 0.
    pub async fn hear(&self, process: ProcessId, number: usize) -> Result<String> {
        let mut events = self.sandbox.attach(process, Offsets::default()).await?;
        let mut heard = Vec::new();
        let listen = async {
            while let Some(event) = events.next().await {
                match event? {
                    Event::Output { stream: Stream::Stdout, data, .. } => {
                        heard.extend_from_slice(&data);
                    }
                    Event::Output { .. } => {}
                    Event::Ended(outcome) => {
                        anyhow::bail!("it ended before it said a line: {outcome:?}")
                    }
                }
                let text = String::from_utf8_lossy(&heard);
                let mut lines = text.split('\n');
                if let (Some(line), Some(_)) = (lines.nth(number), lines.next()) {
                    return Ok(line.to_owned());
                }
            }
            anyhow::bail!("the stream ended before line {number}")
        };
        tokio::time::timeout(PATIENCE, listen).await.context("no such line")?
    }

    /// Processes and threads in the sandbox, as the host counts them.
    pub async fn pids(&self) -> Result<u64> {
        let counted = self.sandbox.usage().await?.pids;
        let counted = counted.or_else(|| self.world.subject.guests(self.sandbox.id()));
        counted.context("this host cannot count processes")
    }

    /// Waits until the host counts no guest; fails the check if it always does. A control, where
    /// some stay for minutes, need not wait long to see that.
    pub async fn quiet(&self) -> Result<()> {
        let wait = if self.weak { Duration::from_secs(1) } else { SOON };
        let quiet = within(wait, || async { Ok(self.pids().await? == 0) }).await?;
        let left = self.pids().await?;
        claim(quiet, || format!("{left} guest processes are left"))
    }

    /// Fails the check unless the sandbox still starts programs and answers for files.
    pub async fn answers(&self) -> Result<()> {
        let answer = async {
            let ran = self.run(probe(&["environment"])).await?;
            anyhow::ensure!(ran.outcome.succeeded(), "{}", ran.told());
            self.sandbox.files().list("/").await?;
            Ok(())
        };
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Broken(format!("the sandbox does not answer: {error:#}")).into()),
            Err(_) => Err(Broken("the sandbox does not answer".to_owned()).into()),
        }
    }
}

async fn collect(mut events: atoll_engine::Events) -> Result<Ran> {
    let (mut stdout, mut stderr, mut end) = (Vec::new(), Vec::new(), None);
    while let Some(event) = events.next().await {
        match event? {
            _ if end.is_some() => {
                return Err(Broken("I5: something came after the end".to_owned()).into());
            }
            Event::Output { stream: Stream::Stdout, data, .. } => stdout.extend_from_slice(&data),
            Event::Output { stream: Stream::Stderr, data, .. } => stderr.extend_from_slice(&data),
            Event::Ended(outcome) => end = Some(outcome),
        }
    }
    let outcome = end.ok_or_else(|| Broken("I5: the stream ended without an end".to_owned()))?;
    Ok(Ran { stdout, stderr, outcome })
}
