//! Processes that run while the client does something else.

use std::sync::Arc;

use atoll_engine::{Events, Offsets, Outcome};
use atoll_types::{
    execution::CommandLine,
    id::{ProcessId, SessionId},
    process::{Process, ProcessEnd, StartProcess, TerminalSize, Written},
    quantity::Span,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use jiff::Timestamp;

use crate::{
    Code, Error, Result, Service, clock,
    executions::{Plan, Wanted, missing},
    id, limits,
};

impl Service {
    /// Starts something in a session and returns at once; it goes on until it ends, its time is
    /// up, or the session ends. Code of a compiled language is compiled first.
    pub async fn start_process(&self, id: &SessionId, request: StartProcess) -> Result<Process> {
        let live = self.live(id).await?;
        let held = live.hold();
        let most = self.inner.settings.max_execution_timeout;
        let timeout = request
            .timeout
            .map(|timeout| limits::span("timeout", timeout, Some(most)))
            .transpose()?;
        let wanted = Wanted::of_process(&request);
        let plan = Plan::new(id::execution(), wanted, timeout, None, live.place())?;
        let service = self.background();
        // Apart from the caller, who must not leave a process that nobody was told of.
        let task = self.inner.tasks.spawn(async move {
            let _held = held;
            let mut command = service.ready(&live, &plan).await?;
            command.stdin = request.stdin;
            command.terminal = request.terminal;
            if request.terminal.is_some() {
                // Only the last of it is kept: there is nothing to limit.
                command.output = None;
            }
            let argv = command.argv.clone();
            let started_at = clock::now();
            let started = live.sandbox.start(command).await;
            let process = started.map_err(|error| missing(&plan, error))?;
            let terminal = request.terminal;
            let written = Written::default();
            Ok(Process { id: process, command: argv, started_at, terminal, written, end: None })
        });
        task.await.map_err(|error| Error::internal("the start broke off").because(error))?
    }

    /// Starts the session's shell with a terminal: `bash` if it has one, else `sh`.
    pub async fn start_shell(&self, id: &SessionId, size: TerminalSize) -> Result<Process> {
        let shell = |name: &str| StartProcess {
            command: Some(CommandLine::Words(vec![name.to_owned()])),
            terminal: Some(size),
            ..StartProcess::default()
        };
        match self.start_process(id, shell("bash")).await {
            Err(error) if error.code == Code::ProgramMissing => {
                self.start_process(id, shell("sh")).await
            }
            started => started,
        }
    }

    /// Lists a session's processes, oldest first.
    pub async fn processes(&self, id: &SessionId) -> Result<Vec<Process>> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.processes().await?.into_iter().map(show).collect())
    }

    /// Finds a process of a session.
    pub async fn process(&self, id: &SessionId, process: ProcessId) -> Result<Process> {
        let all = self.processes(id).await?;
        all.into_iter()
            .find(|one| one.id == process)
            .ok_or_else(|| Error::not_found(format!("session `{id}` has no process {process}")))
    }

    /// A process's output from these offsets on, then its end. The session is in use while the
    /// stream is held.
    pub async fn attach_process(
        &self,
        id: &SessionId,
        process: ProcessId,
        from: Offsets,
    ) -> Result<Events> {
        let live = self.live(id).await?;
        let held = live.hold();
        let events = live.sandbox.attach(process, from).await?;
        let held = Arc::new(held);
        Ok(events
            .map(move |event| {
                let _in_use = &held;
                event
            })
            .boxed())
    }

    /// Writes to a process's standard input; waits while it does not read.
    pub async fn write_stdin(&self, id: &SessionId, process: ProcessId, data: Bytes) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.write_stdin(process, data).await?)
    }

    /// Ends a process's standard input.
    pub async fn close_stdin(&self, id: &SessionId, process: ProcessId) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.close_stdin(process).await?)
    }

    /// Sets the size of a process's terminal.
    pub async fn resize_process(
        &self,
        id: &SessionId,
        process: ProcessId,
        size: TerminalSize,
    ) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.resize(process, size).await?)
    }

    /// Sends a signal to a process, not to its descendants.
    pub async fn signal_process(
        &self,
        id: &SessionId,
        process: ProcessId,
        signal: i32,
    ) -> Result<()> {
        if !(1..=64).contains(&signal) {
            return Err(Error::invalid("`signal` must be a number from 1 to 64"));
        }
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.signal(process, signal).await?)
    }

    /// Ends a process and every descendant.
    pub async fn kill_process(&self, id: &SessionId, process: ProcessId) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.kill(process).await?)
    }

    /// How a process's end is told to clients.
    pub fn process_end(outcome: Outcome) -> ProcessEnd {
        ProcessEnd {
            reason: outcome.reason,
            exit_code: outcome.exit_code,
            signal: outcome.signal,
            duration: Span(outcome.duration),
            truncated: outcome.truncated,
            limits_hit: outcome.limits_hit,
        }
    }
}

fn show(process: atoll_engine::Process) -> Process {
    Process {
        id: process.id,
        command: process.argv,
        started_at: Timestamp::try_from(process.started).unwrap_or(Timestamp::UNIX_EPOCH),
        terminal: process.terminal,
        written: Written { stdout: process.written.stdout, stderr: process.written.stderr },
        end: process.outcome.map(Service::process_end),
    }
}
