//! Reads a process's output to its end, over as many links as it takes.

use std::{pin::pin, sync::Arc, time::Duration};

use atoll_agent_protocol::{
    message::{Attach, Output, request::Call, response::Answer},
    mux::Stream,
};
use atoll_engine::{Error, Event, Events, MAX_OUTPUT, Offsets, Result};
use atoll_types::process::Stream as Channel;
use futures_util::{StreamExt as _, stream};
use tokio::time::sleep;

use crate::{failure, ledger::Watched, line, sandbox::Inner, watch::PAUSE};

/// How long output may still be under way when the process, or the sandbox, has ended.
const REST: Duration = Duration::from_secs(10);
/// Links that may break in a row.
const ATTEMPTS: usize = 25;
const LAST_WORDS: Duration = Duration::from_secs(1);

/// One reader of one process.
pub(crate) struct Reader {
    inner: Arc<Inner>,
    watched: Arc<Watched>,
    next: Offsets,
    stream: Option<Stream>,
    over: bool,
}

impl Reader {
    pub(crate) fn new(inner: Arc<Inner>, watched: Arc<Watched>, from: Offsets) -> Self {
        Self { inner, watched, next: from, stream: None, over: false }
    }

    pub(crate) fn events(self) -> Events {
        stream::unfold(self, |mut reader| async move {
            if reader.over {
                return None;
            }
            let event = reader.event().await;
            reader.over = !matches!(event, Ok(Event::Output { .. }));
            Some((event, reader))
        })
        .boxed()
    }

    async fn event(&mut self) -> Result<Event> {
        for _attempt in 0..ATTEMPTS {
            let error = match self.answer().await {
                Ok(Answer::Output(output)) => return self.output(output),
                Ok(Answer::Ended(ended)) => {
                    self.watched.hear(ended);
                    return Ok(Event::Ended(self.watched.settled().await));
                }
                Ok(_) => return Err(failure::nonsense()),
                Err(error) => error,
            };
            self.stream = None;
            // Either the sandbox has ended too, or another link may do.
            tokio::select! {
                biased;
                () = self.inner.ended.cancelled() => {
                    return Ok(Event::Ended(self.watched.settled().await));
                }
                () = sleep(PAUSE) => {}
            }
            if !failure::is_of_link(&error) {
                return Err(error);
            }
        }
        Err(Error::internal("the connection to the sandbox breaks again and again"))
    }

    async fn answer(&mut self) -> Result<Answer> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let Offsets { stdout, stderr } = self.next;
                let attach = Attach { process: self.watched.id.0, stdout, stderr };
                let stream = tokio::select! {
                    biased;
                    stream = self.inner.flows.begin(Call::Attach(attach)) => stream?,
                    () = self.inner.ended.cancelled() => return Err(failure::lost()),
                };
                stream.finish();
                none.insert(stream)
            }
        };
        let mut answer = pin!(line::answer(stream));
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            _ = self.watched.settled() => {}
            () = self.inner.ended.cancelled() => {}
        }
        // Nothing new will be written; what was is under way, or was lost with the sandbox.
        let limit = if self.inner.ended.is_cancelled() { LAST_WORDS } else { REST };
        match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer,
            Err(_) if self.inner.ended.is_cancelled() => Err(failure::nonsense()),
            Err(_) => Err(failure::silence()),
        }
    }

    /// Checks that these bytes are the next ones.
    fn output(&mut self, Output { stream, offset, data }: Output) -> Result<Event> {
        let (next, stream) = match stream {
            1 => (&mut self.next.stdout, Channel::Stdout),
            2 => (&mut self.next.stderr, Channel::Stderr),
            _ => return Err(failure::nonsense()),
        };
        // Of a terminal, what came before may be gone, and there is no end to what comes.
        let terminal = self.watched.note.has_terminal();
        let end = offset.checked_add(data.len() as u64);
        let end = end.filter(|end| terminal || *end <= MAX_OUTPUT);
        let follows = if terminal { offset >= *next } else { offset == *next };
        match end {
            Some(end) if follows && !data.is_empty() => *next = end,
            _ => return Err(Error::internal("the sandbox's agent lost some of the output")),
        }
        Ok(Event::Output { stream, offset, data })
    }
}
