//! Processes that run while the client does something else.

use atoll_types::{
    id::{ProcessId, SessionId},
    process::{Process, ProcessList, SignalProcess, StartProcess, TerminalSize},
};
use bytes::Bytes;
use hyper::{Method, header::HeaderMap};

use crate::{Client, body, error::Result, events::Events, files::Download, query, sessions::at};

impl Client {
    pub async fn start_process(&self, id: &SessionId, request: &StartProcess) -> Result<Process> {
        self.post(&at(id, "/processes"), request).await
    }

    /// The session's processes, oldest first.
    pub async fn processes(&self, id: &SessionId) -> Result<Vec<Process>> {
        self.get(&at(id, "/processes")).await.map(|ProcessList { processes }| processes)
    }

    pub async fn process(&self, id: &SessionId, process: ProcessId) -> Result<Process> {
        self.get(&of(id, process, "")).await
    }

    /// What a process wrote and writes, from these bytes on, then its end.
    pub async fn attach_process(
        &self,
        id: &SessionId,
        process: ProcessId,
        stdout: u64,
        stderr: u64,
    ) -> Result<Events> {
        let (stdout, stderr) = (stdout.to_string(), stderr.to_string());
        let pairs = [("stdout", stdout.as_str()), ("stderr", stderr.as_str())];
        let target = query::with(&of(id, process, "/attach"), pairs);
        let answer = self.send(Method::GET, &target, HeaderMap::new(), body::empty()).await?;
        Ok(Events::new(Download(answer.into_body())))
    }

    /// Writes to a process's standard input; waits while it does not read.
    pub async fn write_stdin(
        &self,
        id: &SessionId,
        process: ProcessId,
        data: impl Into<Bytes>,
    ) -> Result<()> {
        let (target, body) = (of(id, process, "/stdin"), body::whole(data));
        body::nothing(self.send(Method::POST, &target, HeaderMap::new(), body).await?).await
    }

    /// Ends a process's standard input.
    pub async fn close_stdin(&self, id: &SessionId, process: ProcessId) -> Result<()> {
        self.delete(&of(id, process, "/stdin")).await
    }

    /// Sends a signal to a process, not to its descendants.
    pub async fn signal_process(
        &self,
        id: &SessionId,
        process: ProcessId,
        signal: i32,
    ) -> Result<()> {
        self.tell(&of(id, process, "/signal"), &SignalProcess { signal }).await
    }

    /// Sets the size of a process's terminal.
    pub async fn resize_process(
        &self,
        id: &SessionId,
        process: ProcessId,
        size: TerminalSize,
    ) -> Result<()> {
        self.tell(&of(id, process, "/resize"), &size).await
    }

    /// Ends a process and every descendant.
    pub async fn kill_process(&self, id: &SessionId, process: ProcessId) -> Result<()> {
        self.delete(&of(id, process, "")).await
    }
}

fn of(id: &SessionId, process: ProcessId, rest: &str) -> String {
    at(id, &format!("/processes/{process}{rest}"))
}
