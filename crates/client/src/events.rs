//! What a process writes, as it comes.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use atoll_types::{
    error::ErrorBody,
    process::{ProcessEnd, ProcessEvent, Stream as Output},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep};

use crate::{
    error::{Error, Refused, Result},
    files::Download,
    sse::{Message, Parser},
};

/// How long a server may say nothing; ours says something every fifteen seconds.
const SILENCE: Duration = Duration::from_mins(1);

/// One thing that happened to a process.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Bytes of one stream, and where in it they begin.
    Output { stream: Output, offset: u64, data: Bytes },
    /// The last event.
    End(ProcessEnd),
}

/// The events of one process: its output in order, then its end.
///
/// A stream that ends before [`Event::End`] ends in an error.
#[derive(Debug)]
pub struct Events {
    bytes: Download,
    parser: Parser,
    /// When a server that has said nothing must be gone: a living one says that it is alive.
    silent: Pin<Box<Sleep>>,
    over: bool,
}

impl Events {
    pub(crate) fn new(bytes: Download) -> Self {
        let silent = Box::pin(tokio::time::sleep(SILENCE));
        Self { bytes, parser: Parser::default(), silent, over: false }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Event>> {
        loop {
            match self.parser.next() {
                Ok(Some(message)) => return Poll::Ready(read(&message)),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(Error::Garbled(error.to_string()))),
            }
            let bytes = match Pin::new(&mut self.bytes).poll_next(context) {
                Poll::Ready(bytes) => bytes,
                Poll::Pending => {
                    ready!(self.silent.as_mut().poll(context));
                    return Poll::Ready(Err(Error::broken("the server says nothing any more")));
                }
            };
            self.silent.as_mut().reset(Instant::now() + SILENCE);
            match bytes {
                Some(Ok(bytes)) => self.parser.push(&bytes),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => {
                    return Poll::Ready(Err(Error::broken(
                        "the events ended before the process did",
                    )));
                }
            }
        }
    }
}

impl Stream for Events {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let event = ready!(self.poll_event(context));
        self.over = !matches!(event, Ok(Event::Output { .. }));
        Poll::Ready(Some(event))
    }
}

fn read(message: &Message) -> Result<Event> {
    let garbled = |error: &dyn std::fmt::Display| Error::Garbled(error.to_string());
    if message.kind == "error" {
        let body: ErrorBody =
            serde_json::from_str(&message.data).map_err(|error| garbled(&error))?;
        return Err(Refused::new(200, body.error).into());
    }
    match serde_json::from_str(&message.data).map_err(|error| garbled(&error))? {
        ProcessEvent::Output { stream, offset, data } => {
            let data = STANDARD.decode(data).map_err(|error| garbled(&error))?.into();
            Ok(Event::Output { stream, offset, data })
        }
        ProcessEvent::End { end } => Ok(Event::End(end)),
    }
}
