//! Run a command to its end, for callers that want nothing in between.

use atoll_types::{id::ProcessId, process::Stream};
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::{Command, Error, Event, Offsets, Outcome, Result, Sandbox};

/// What a command wrote and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub outcome: Outcome,
}

/// Starts `command`, feeds it `stdin`, and waits for its end.
///
/// Dropping the future kills the command and its descendants, in the background.
pub async fn exec(
    sandbox: &std::sync::Arc<dyn Sandbox>,
    mut command: Command,
    stdin: Option<Bytes>,
) -> Result<Output> {
    command.stdin = stdin.is_some();
    let process = sandbox.start(command).await?;
    let mut guard = KillOnDrop { sandbox: std::sync::Arc::clone(sandbox), process: Some(process) };
    let feed = async {
        if let Some(data) = stdin {
            // A program need not read what it is given: only its end counts.
            let _ = sandbox.write_stdin(process, data).await;
            let _ = sandbox.close_stdin(process).await;
        }
        std::future::pending::<()>().await;
    };
    let output = tokio::select! {
        output = collect(sandbox.as_ref(), process) => output?,
        () = feed => unreachable!("feeding never returns"),
    };
    guard.process = None;
    Ok(output)
}

async fn collect(sandbox: &dyn Sandbox, process: ProcessId) -> Result<Output> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut events = sandbox.attach(process, Offsets::default()).await?;
    while let Some(event) = events.next().await {
        match event? {
            Event::Output { stream: Stream::Stdout, data, .. } => stdout.extend_from_slice(&data),
            Event::Output { stream: Stream::Stderr, data, .. } => stderr.extend_from_slice(&data),
            Event::Ended(outcome) => return Ok(Output { stdout, stderr, outcome }),
        }
    }
    Err(Error::internal("the output ended before the process did"))
}

struct KillOnDrop {
    sandbox: std::sync::Arc<dyn Sandbox>,
    process: Option<ProcessId>,
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Some(process) = self.process else { return };
        let sandbox = std::sync::Arc::clone(&self.sandbox);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { sandbox.kill(process).await });
        }
    }
}
