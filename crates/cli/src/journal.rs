//! A process's output over as many connections as it takes: no byte missing, none twice.

use std::{io, time::Duration};

use atoll_client::{Client, Error, Event};
use atoll_types::{
    id::{ProcessId, SessionId},
    process::{ProcessEnd, Stream, Written},
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep};

use crate::{
    failure::{Failure, Result},
    invocation::Invocation,
    scroll::Scroll,
};

/// How long a server may be away.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long to wait before the next attempt, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// A reader, and how far it has read.
#[derive(Debug)]
pub(crate) struct Journal<'a> {
    invocation: &'a Invocation,
    client: Client,
    session: &'a SessionId,
    process: ProcessId,
    next: Written,
}

/// Why reading stopped.
#[derive(Debug)]
pub(crate) enum Read {
    /// What was wanted is read.
    Reached,
    Ended(ProcessEnd),
    /// Whoever read our standard output has gone.
    Unread,
}

/// Why a connection is no longer read.
enum Broken {
    Stopped(Read),
    /// Another might do.
    Lost(Error),
}

impl<'a> Journal<'a> {
    pub(crate) fn new(
        invocation: &'a Invocation,
        client: Client,
        session: &'a SessionId,
        process: ProcessId,
        from: Written,
    ) -> Self {
        Self { invocation, client, session, process, next: from }
    }

    /// Reads until so much is read, or else until the process ends.
    pub(crate) async fn read(&mut self, to: &mut Scroll, until: Option<Written>) -> Result<Read> {
        let mut lost: Option<(Instant, Duration)> = None;
        loop {
            if self.reached(until) {
                return Ok(Read::Reached);
            }
            let before = self.next;
            let error = match self.attached(to, until).await? {
                Broken::Stopped(read) => return Ok(read),
                Broken::Lost(error) => error,
            };
            if lost.is_none() || self.next != before {
                self.invocation.printer.note(format_args!("{error}; attaching again"));
                lost = Some((Instant::now() + PATIENCE, PAUSES.0));
            }
            let Some((deadline, pause)) = &mut lost else { continue };
            if Instant::now() >= *deadline {
                return Err(error.into());
            }
            sleep(*pause).await;
            *pause = PAUSES.1.min(*pause * 2);
            // A private server that has gone is started again.
            if let Ok(client) = self.invocation.client().await {
                self.client = client;
            }
        }
    }

    fn reached(&self, until: Option<Written>) -> bool {
        until.is_some_and(|until| {
            self.next.stdout >= until.stdout && self.next.stderr >= until.stderr
        })
    }

    /// Reads over one connection.
    async fn attached(&mut self, to: &mut Scroll, until: Option<Written>) -> Result<Broken> {
        let Written { stdout, stderr } = self.next;
        let attached = self.client.attach_process(self.session, self.process, stdout, stderr);
        let mut events = match attached.await {
            Ok(events) => events,
            Err(error) => return lost(error),
        };
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Output { stream, offset, data }) => {
                    match self.output(to, stream, offset, data).await {
                        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                            return Ok(Broken::Stopped(Read::Unread));
                        }
                        Err(error) => return Err(Failure::new(format!("cannot write: {error}"))),
                        Ok(()) if self.reached(until) => return Ok(Broken::Stopped(Read::Reached)),
                        Ok(()) => {}
                    }
                }
                Ok(Event::End(end)) => return Ok(Broken::Stopped(Read::Ended(end))),
                Err(error) => return lost(error),
            }
        }
        Err(Failure::new("the output ended before the process did"))
    }

    async fn output(
        &mut self,
        to: &mut Scroll,
        stream: Stream,
        offset: u64,
        mut data: Bytes,
    ) -> io::Result<()> {
        let next = match stream {
            Stream::Stdout => &mut self.next.stdout,
            Stream::Stderr => &mut self.next.stderr,
        };
        if offset > *next {
            // A terminal keeps only the last of what was shown on it.
            to.gap(stream, *next, offset).await?;
        } else {
            let known = usize::try_from(*next - offset).unwrap_or(usize::MAX).min(data.len());
            data = data.slice(known..);
        }
        let end = (offset.max(*next)) + data.len() as u64;
        to.output(stream, offset.max(*next), data).await?;
        // Passed on, so never asked for again.
        *next = end;
        Ok(())
    }
}

/// Whether the connection is to blame, rather than the request.
fn lost(error: Error) -> Result<Broken> {
    let again = match &error {
        Error::Broken(_) | Error::Unreachable { .. } => true,
        Error::Refused(refused) => matches!(refused.status, 502 | 503),
        _ => false,
    };
    if again { Ok(Broken::Lost(error)) } else { Err(error.into()) }
}
