//! A sandbox for one case, gone when the case is, and short ways to use it.

use std::{ops::Deref, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::time;

use super::{
    Failure, Stage,
    case::{broken, unless_refused},
};
use crate::{
    Command, Event, Offsets, Outcome, Output, ProcessId, Sandbox, SandboxId, Spec, Stream,
};

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(30);

/// Destroys its sandbox when dropped, also by a case that fails.
pub(super) struct Scratch {
    stage: Stage,
    sandbox: Arc<dyn Sandbox>,
}

impl Scratch {
    pub(super) async fn new(stage: &Stage) -> Result<Self, Failure> {
        let id = fresh_id();
        let guard = Doomed { stage: stage.clone(), id: Some(id.clone()) };
        let sandbox = stage.engine().create(&id, &stage.spec()).await?;
        Ok(guard.into_scratch(sandbox))
    }

    /// With a spec that asks for `what`, which the engine may refuse.
    pub(super) async fn asking(stage: &Stage, what: &str, spec: Spec) -> Result<Self, Failure> {
        let id = fresh_id();
        let guard = Doomed { stage: stage.clone(), id: Some(id.clone()) };
        let sandbox = unless_refused(what, stage.engine().create(&id, &spec).await)?;
        Ok(guard.into_scratch(sandbox))
    }

    pub(super) fn sandbox(&self) -> &Arc<dyn Sandbox> {
        &self.sandbox
    }

    /// Runs a command to its end.
    pub(super) async fn run(&self, command: Command) -> Result<Output, Failure> {
        Ok(crate::exec(&self.sandbox, command, None).await?)
    }

    /// Runs a line of shell to its end.
    pub(super) async fn sh(&self, line: &str) -> Result<Output, Failure> {
        self.run(Command::shell(line)).await
    }

    /// What a line of shell that succeeds writes.
    pub(super) async fn text(&self, line: &str) -> Result<String, Failure> {
        let output = self.sh(line).await?;
        if output.outcome.succeeded() {
            return Ok(text(&output.stdout));
        }
        broken(format!("`{line}`: {:?}, {}", output.outcome, text(&output.stderr)))
    }

    /// What a process wrote and how it ended.
    pub(super) async fn finish(&self, process: ProcessId) -> Result<Output, Failure> {
        finish(self.sandbox.as_ref(), process, Offsets::default()).await
    }

    /// Returns once a line of shell succeeds.
    pub(super) async fn until(&self, line: &str) -> Result<(), Failure> {
        let waiting = format!("until {line}; do sleep 0.05; done");
        let command = Command::shell(waiting).timeout(PATIENCE);
        let output = self.run(command).await?;
        if output.outcome.succeeded() {
            return Ok(());
        }
        broken(format!("waited for `{line}`: {:?}", output.outcome))
    }

    /// Returns once the process whose pid a file holds is no more.
    pub(super) async fn until_gone(&self, file: &str) -> Result<(), Failure> {
        self.until(&format!("! kill -0 \"$(cat {file})\" 2>/dev/null")).await
    }

    /// How a process ended, from the list of them and attached to none.
    pub(super) async fn until_listed_end(&self, process: ProcessId) -> Result<Outcome, Failure> {
        let deadline = time::Instant::now() + PATIENCE;
        loop {
            let processes = self.sandbox.processes().await?;
            let found = processes.into_iter().find(|listed| listed.id == process);
            if let Some(outcome) = found.and_then(|listed| listed.outcome) {
                return Ok(outcome);
            }
            if time::Instant::now() > deadline {
                return broken("the process never ended");
            }
            time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Deref for Scratch {
    type Target = dyn Sandbox;

    fn deref(&self) -> &Self::Target {
        self.sandbox.as_ref()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.stage.leave(self.sandbox.id().clone());
    }
}

/// An id whose sandbox, if it comes to be, is to be destroyed.
pub(super) struct Doomed {
    stage: Stage,
    id: Option<SandboxId>,
}

impl Doomed {
    pub(super) fn new(stage: &Stage, id: &SandboxId) -> Self {
        Self { stage: stage.clone(), id: Some(id.clone()) }
    }

    fn into_scratch(mut self, sandbox: Arc<dyn Sandbox>) -> Scratch {
        self.id = None;
        Scratch { stage: self.stage.clone(), sandbox }
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.stage.leave(id);
        }
    }
}

/// An id that no other run on this host uses.
pub(super) fn fresh_id() -> SandboxId {
    let number = getrandom::u64().expect("the kernel has random numbers");
    format!("case-{number:016x}").parse().expect("an id is made of letters and digits")
}

/// Reads a process's output from these offsets to its end, and that it comes in order.
pub(super) async fn finish(
    sandbox: &dyn Sandbox,
    process: ProcessId,
    from: Offsets,
) -> Result<Output, Failure> {
    let mut events = sandbox.attach(process, from).await?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(event) = events.next().await {
        let (start, seen, offset, data) = match event? {
            Event::Output { stream: Stream::Stdout, offset, data } => {
                (from.stdout, &mut stdout, offset, data)
            }
            Event::Output { stream: Stream::Stderr, offset, data } => {
                (from.stderr, &mut stderr, offset, data)
            }
            Event::Ended(outcome) => {
                if events.next().await.is_some() {
                    return broken("something came after the end");
                }
                return Ok(Output { stdout, stderr, outcome });
            }
        };
        if offset != start + seen.len() as u64 {
            return broken(format!("bytes at {offset} came after {} bytes", seen.len()));
        }
        seen.extend_from_slice(&data);
    }
    broken("the events ended without an end")
}

/// Waits for one event of output.
pub(super) async fn some_output(events: &mut crate::Events) -> Result<Bytes, Failure> {
    match events.next().await {
        Some(Ok(Event::Output { data, .. })) => Ok(data),
        other => broken(format!("no output but {other:?}")),
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
