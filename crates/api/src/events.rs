//! A process's output as server-sent events.

use std::{convert::Infallible, time::Duration};

use atoll_service::{Event, Events, Offsets, Outcome};
use atoll_types::{
    error::ErrorBody,
    process::{ProcessEnd, ProcessEvent, Stream},
    quantity::Span,
};
use axum::{
    http::HeaderMap,
    response::{
        IntoResponse,
        sse::{self, KeepAlive, Sse},
    },
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// The most bytes of output in one event.
const MOST: usize = 64 << 10;

/// How often a quiet stream says that it is alive.
pub(crate) const ALIVE: Duration = Duration::from_secs(15);

/// Where the client wants to begin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    #[serde(default)]
    stdout: u64,
    #[serde(default)]
    stderr: u64,
}

impl Start {
    /// A client that comes back repeats its query, so the last event's id counts before it.
    pub(crate) fn offsets(&self, headers: &HeaderMap) -> Result<Offsets, Error> {
        let Some(last) = headers.get("last-event-id") else {
            return Ok(Offsets { stdout: self.stdout, stderr: self.stderr });
        };
        let parsed = last.to_str().ok().and_then(|last| {
            let (stdout, stderr) = last.split_once(':')?;
            Some(Offsets { stdout: stdout.parse().ok()?, stderr: stderr.parse().ok()? })
        });
        parsed.ok_or_else(|| Error::invalid("`Last-Event-ID` is two numbers, as in `120:0`"))
    }
}

/// The answer that follows a process until it ends, or the server does.
pub(crate) fn answer(
    events: Events,
    from: Offsets,
    closing: CancellationToken,
) -> impl IntoResponse {
    let mut reached = from;
    let events = events
        .flat_map(|event| stream::iter(split(event)))
        .map(move |event| Ok::<_, Infallible>(shown(event, &mut reached)))
        .take_until(closing.cancelled_owned());
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE))
}

/// An event, or the error that ends them.
type Step = Result<Event, Error>;

/// Long output in pieces a reader can bound.
fn split(event: Result<Event, atoll_service::EngineError>) -> Vec<Step> {
    match event {
        Ok(Event::Output { stream, offset, data }) => pieces(&data)
            .scan(offset, |offset, data| {
                let start = *offset;
                *offset += data.len() as u64;
                Some(Ok(Event::Output { stream, offset: start, data }))
            })
            .collect(),
        Ok(ended) => vec![Ok(ended)],
        Err(error) => vec![Err(atoll_service::Error::from(error).into())],
    }
}

fn pieces(data: &Bytes) -> impl Iterator<Item = Bytes> {
    (0..data.len()).step_by(MOST).map(|at| data.slice(at..data.len().min(at + MOST)))
}

fn shown(event: Step, reached: &mut Offsets) -> sse::Event {
    let (kind, data) = match event {
        Ok(Event::Output { stream, offset, data }) => {
            let end = offset + data.len() as u64;
            match stream {
                Stream::Stdout => reached.stdout = end,
                Stream::Stderr => reached.stderr = end,
            }
            let data = STANDARD.encode(data);
            ("output", serde_json::to_string(&ProcessEvent::Output { stream, offset, data }))
        }
        Ok(Event::Ended(outcome)) => {
            ("end", serde_json::to_string(&ProcessEvent::End { end: end(outcome) }))
        }
        Err(error) => ("error", serde_json::to_string(&ErrorBody { error: error.problem() })),
    };
    let id = format!("{}:{}", reached.stdout, reached.stderr);
    sse::Event::default().event(kind).id(id).data(data.expect("plain data is JSON"))
}

fn end(outcome: Outcome) -> ProcessEnd {
    ProcessEnd {
        reason: outcome.reason,
        exit_code: outcome.exit_code,
        signal: outcome.signal,
        duration: Span(outcome.duration),
        truncated: outcome.truncated,
        limits_hit: outcome.limits_hit,
    }
}
