//! One reader of a process with a terminal, and what it has seen.

use futures_util::StreamExt as _;

use super::{
    Failure,
    case::broken,
    scratch::{Scratch, text},
};
use crate::{Command, Event, Events, Offsets, Outcome, ProcessId, Sandbox};

pub(super) struct Screen {
    pub(super) process: ProcessId,
    events: Events,
    pub(super) seen: Vec<u8>,
    /// Where the first byte seen is in all of the output.
    pub(super) first: Option<u64>,
    /// Where the next one is expected.
    pub(super) next: u64,
    /// Bytes that were left out between what was seen.
    pub(super) missing: u64,
}

impl Screen {
    /// Starts a line of shell with a terminal of 24 by 80, and reads.
    pub(super) async fn start(scratch: &Scratch, line: &str) -> Result<Self, Failure> {
        let process = scratch.start(Command::shell(line).with_terminal(24, 80)).await?;
        Self::attach(scratch.sandbox().as_ref(), process, 0).await
    }

    pub(super) async fn attach(
        sandbox: &dyn Sandbox,
        process: ProcessId,
        from: u64,
    ) -> Result<Self, Failure> {
        let events = sandbox.attach(process, Offsets { stdout: from, stderr: 0 }).await?;
        Ok(Self { process, events, seen: Vec::new(), first: None, next: from, missing: 0 })
    }

    /// Reads on until this has been seen.
    pub(super) async fn until(&mut self, what: &str) -> Result<(), Failure> {
        while !text(&self.seen).contains(what) {
            if let Some(outcome) = self.step().await? {
                let seen = text(&self.seen);
                return broken(format!("it ended without {what:?}: {outcome:?}, {seen:?}"));
            }
        }
        Ok(())
    }

    /// Reads to the end.
    pub(super) async fn end(&mut self) -> Result<Outcome, Failure> {
        loop {
            if let Some(outcome) = self.step().await? {
                return Ok(outcome);
            }
        }
    }

    pub(super) fn text(&self) -> String {
        text(&self.seen)
    }

    async fn step(&mut self) -> Result<Option<Outcome>, Failure> {
        match self.events.next().await {
            Some(Ok(Event::Output { stream: crate::Stream::Stdout, offset, data })) => {
                if offset < self.next {
                    return broken(format!("bytes at {offset} came where {} is next", self.next));
                }
                if self.first.is_some() {
                    self.missing += offset - self.next;
                }
                self.first.get_or_insert(offset);
                self.next = offset + data.len() as u64;
                self.seen.extend_from_slice(&data);
                Ok(None)
            }
            Some(Ok(Event::Ended(outcome))) => Ok(Some(outcome)),
            other => broken(format!("a terminal told {other:?}")),
        }
    }
}
