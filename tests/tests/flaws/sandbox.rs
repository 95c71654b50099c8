//! A sandbox over a sound one, with one flaw.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use atoll_engine::{
    Command, Error, Event, Events, Files, Offsets, Ports, Process, ProcessId, Reason, Result,
    Sandbox, SandboxId, TerminalSize, Usage,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::runtime::Handle;

use crate::{files::FlawedFiles, flaw::Flaw, ports::FlawedPorts};

#[derive(Debug)]
pub(crate) struct FlawedSandbox {
    inner: Arc<dyn Sandbox>,
    flaw: Flaw,
    files: FlawedFiles,
    ports: Option<FlawedPorts>,
    directory: PathBuf,
}

impl FlawedSandbox {
    pub(crate) fn new(inner: Arc<dyn Sandbox>, flaw: Flaw, directory: PathBuf) -> Self {
        let files = FlawedFiles { inner: Arc::clone(&inner), flaw };
        let ports = FlawedPorts::new(flaw);
        Self { inner, flaw, files, ports, directory }
    }

    fn spoil(&self, mut command: Command) -> Command {
        match self.flaw {
            Flaw::IgnoresTerminals => command.terminal = None,
            Flaw::IgnoresTimeout => command.timeout = None,
            Flaw::IgnoresWorkingDirectory => command.cwd = None,
            Flaw::IgnoresOutputLimit => command.output = None,
            Flaw::LimitsOutputTooEarly => {
                command.output = command.output.map(|limit| limit.saturating_sub(1));
            }
            Flaw::LeaksAVariable => {
                command.env.insert("DAEMON_SECRET".into(), "1".into());
            }
            Flaw::EndsOnEof => return through_shell(command, "\"$@\" | cat"),
            Flaw::StartsAnything => return through_shell(command, "exec \"$@\""),
            Flaw::LeaksADescriptor => {
                return through_shell(command, "exec 7</dev/null; exec \"$@\"");
            }
            Flaw::IgnoresASignal => return through_shell(command, "trap '' PIPE; exec \"$@\""),
            _ => {}
        }
        command
    }
}

/// Runs a command's words as the arguments of a line of shell.
fn through_shell(mut command: Command, line: &str) -> Command {
    let shell = ["/bin/sh", "-c", line, "sh"].map(str::to_owned);
    command.argv = shell.into_iter().chain(command.argv).collect();
    command
}

/// Spoils one event: what comes instead of it.
fn spoil_event(flaw: Flaw, event: Event) -> Vec<Event> {
    match (flaw, event) {
        (Flaw::DropsAByte, Event::Output { stream, offset, data }) => {
            let data = data.slice(..data.len().saturating_sub(1));
            vec![Event::Output { stream, offset, data }]
        }
        (Flaw::DuplicatesOutput, event @ Event::Output { .. }) => vec![event.clone(), event],
        (Flaw::CutsExitCodes, Event::Ended(mut outcome)) => {
            outcome.exit_code = outcome.exit_code.map(|code| code & 0x7f);
            vec![Event::Ended(outcome)]
        }
        (Flaw::BlamesTheProgram, Event::Ended(mut outcome)) => {
            if outcome.reason == Reason::Timeout {
                outcome.reason = Reason::Signaled;
            }
            vec![Event::Ended(outcome)]
        }
        (Flaw::CallsLostCancelled, Event::Ended(mut outcome)) => {
            if outcome.reason == Reason::Lost {
                outcome.reason = Reason::Cancelled;
            }
            vec![Event::Ended(outcome)]
        }
        (_, event) => vec![event],
    }
}

#[async_trait]
impl Sandbox for FlawedSandbox {
    fn id(&self) -> &SandboxId {
        self.inner.id()
    }

    async fn start(&self, command: Command) -> Result<ProcessId> {
        let started = self.inner.start(self.spoil(command)).await;
        if self.flaw != Flaw::TellsHostPaths {
            return started;
        }
        let place = self.directory.display();
        started.map_err(|error| Error::new(error.kind(), format!("{error} in {place}")))
    }

    async fn attach(&self, process: ProcessId, mut from: Offsets) -> Result<Events> {
        let flaw = self.flaw;
        if flaw == Flaw::IgnoresOffsets {
            from = Offsets::default();
        }
        let events = self.inner.attach(process, from).await?;
        if flaw == Flaw::HoldsOutputBack {
            let all = async move { stream::iter(events.collect::<Vec<_>>().await) };
            return Ok(stream::once(all).flatten().boxed());
        }
        let spoiled = events.flat_map(move |event| {
            stream::iter(match event {
                Ok(event) => spoil_event(flaw, event).into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            })
        });
        Ok(spoiled.boxed())
    }

    async fn write_stdin(&self, process: ProcessId, data: Bytes) -> Result<()> {
        if self.flaw != Flaw::DoesNotWaitForReaders {
            return self.inner.write_stdin(process, data).await;
        }
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.write_stdin(process, data).await });
        Ok(())
    }

    async fn close_stdin(&self, process: ProcessId) -> Result<()> {
        match self.flaw {
            Flaw::KeepsInputOpen => Ok(()),
            _ => self.inner.close_stdin(process).await,
        }
    }

    async fn resize(&self, process: ProcessId, size: TerminalSize) -> Result<()> {
        match self.flaw {
            Flaw::IgnoresResize => Ok(()),
            _ => self.inner.resize(process, size).await,
        }
    }

    async fn signal(&self, process: ProcessId, signal: i32) -> Result<()> {
        match self.flaw {
            Flaw::SignalsDescendants => self.inner.kill(process).await,
            _ => self.inner.signal(process, signal).await,
        }
    }

    async fn kill(&self, process: ProcessId) -> Result<()> {
        match self.flaw {
            Flaw::KillsOnlyTheProcess => self.inner.signal(process, 9).await,
            _ => self.inner.kill(process).await,
        }
    }

    async fn processes(&self) -> Result<Vec<Process>> {
        match self.flaw {
            Flaw::ForgetsProcesses => Ok(Vec::new()),
            _ => self.inner.processes().await,
        }
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn ports(&self) -> Option<&dyn Ports> {
        match &self.ports {
            Some(ports) => Some(ports),
            None => self.inner.ports(),
        }
    }

    async fn usage(&self) -> Result<Usage> {
        self.inner.usage().await
    }

    async fn ended(&self) {
        if self.flaw == Flaw::NeverEnds {
            std::future::pending::<()>().await;
        }
        self.inner.ended().await;
    }

    async fn destroy(&self) -> Result<()> {
        match self.flaw {
            Flaw::LeavesEverything => Ok(()),
            _ => self.inner.destroy().await,
        }
    }
}

impl Drop for FlawedSandbox {
    fn drop(&mut self) {
        if self.flaw != Flaw::DestroysOnDrop {
            return;
        }
        // Here and now: in the background, the case might be over first.
        let (inner, runtime) = (Arc::clone(&self.inner), Handle::current());
        tokio::task::block_in_place(|| {
            let ending = std::thread::spawn(move || runtime.block_on(inner.destroy()));
            let _ = ending.join();
        });
    }
}
