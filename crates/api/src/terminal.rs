//! `…/terminal`: a terminal over a WebSocket.
//!
//! Binary frames are bytes, typed and shown; text frames are [`TerminalControl`] and
//! [`TerminalEvent`]. A client that leaves changes nothing: the terminal goes on, and whoever comes
//! back is shown what is kept. Everything waits for the client only in so far as the engine's
//! contract lets a reader be waited for.

use std::{pin::pin, sync::Arc, time::Duration};

use atoll_service::{Code, EngineError, Event, Events, Offsets, Service};
use atoll_types::{
    error::Problem,
    id::{ProcessId, SessionId},
    key::Scope::Run,
    process::{Process, TerminalSize},
    terminal::{TerminalControl, TerminalEvent},
};
use axum::{
    extract::{
        FromRequestParts, State,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code},
    },
    http::request::Parts,
    response::Response,
};
use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use serde::Deserialize;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access::Key, Routes},
    app::App,
    error::{Error, Result},
    extract::{Query, Session},
};

/// Terminals shown at one time. They are no longer counted as connections.
const ROOM: usize = 512;
/// Bytes of one message from a client, and what is kept for one that reads slowly.
const MESSAGE: usize = 256 << 10;
const UNSENT: usize = 1 << 20;
/// Bytes shown in one message.
const MOST: usize = 32 << 10;
/// How often a client is asked whether it is there, and how long it may say nothing.
const ASK: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_mins(1);
/// How long a client may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };

pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/sessions/{id}/terminal", Key(Run), attach)
}

/// Places for terminals that are shown.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM)))
    }
}

impl Room {
    fn take(&self) -> Result<OwnedSemaphorePermit> {
        let full = |_| Error::unavailable(format!("{ROOM} terminals are being shown already"));
        Arc::clone(&self.0).try_acquire_owned().map_err(full)
    }
}

/// Which terminal, and of what size.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    process: Option<u64>,
    offset: Option<u64>,
    rows: Option<u16>,
    columns: Option<u16>,
}

impl Wanted {
    /// The size, if one was given.
    fn size(&self) -> Result<Option<TerminalSize>> {
        match (self.rows, self.columns) {
            (Some(rows), Some(columns)) => Ok(Some(TerminalSize { rows, columns })),
            (None, None) => Ok(None),
            _ => Err(Error::invalid("`rows` and `columns` come together")),
        }
    }
}

/// The request's wish to become a WebSocket; a request without one is told so.
pub(crate) struct Upgrade(WebSocketUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await;
        upgrade.map(Self).map_err(|_| {
            Error::invalid("this is a WebSocket: ask for the connection to be upgraded")
        })
    }
}

/// Use a terminal, over a WebSocket: a process's that has one, or a new one with the session's
/// shell.
///
/// Binary frames are what is typed and what is shown, from byte `offset` on; text frames are
/// `TerminalControl` one way and `TerminalEvent` the other. Leaving changes nothing.
#[utoipa::path(
    get, path = "/api/sessions/{id}/terminal", tag = "terminal",
    params(
        ("id" = SessionId, Path), ("process" = Option<u64>, Query),
        ("offset" = Option<u64>, Query), ("rows" = Option<u16>, Query),
        ("columns" = Option<u16>, Query),
    ),
    responses((status = 101, body = TerminalEvent))
)]
pub(crate) async fn attach(
    State(app): State<App>,
    Session(id): Session,
    Query(wanted): Query<Wanted>,
    Upgrade(upgrade): Upgrade,
) -> Result<Response> {
    let permit = app.terminals.take()?;
    let process = find(&app.service, &id, &wanted).await?;
    let from = wanted.offset.unwrap_or(0);
    let offsets = Offsets { stdout: from, stderr: 0 };
    let events = app.service.attach_process(&id, process.id, offsets).await?;
    let closing = app.settings.closing.clone();
    let upgrade = upgrade
        .max_message_size(MESSAGE)
        .max_frame_size(MESSAGE)
        .max_write_buffer_size(UNSENT)
        .on_failed_upgrade(|error| tracing::debug!(%error, "a terminal was not shown"));
    Ok(upgrade.on_upgrade(move |socket| async move {
        let of = process.id;
        let (sink, stream) = socket.split();
        let (errors, refusals) = mpsc::channel(4);
        let alive = Alive::default();
        let mut typed = pin!(hear(app.service, (id, of), stream, errors, alive.clone()));
        let mut screen = Screen { sink, next: from, alive };
        let heard_all = tokio::select! {
            biased;
            () = screen.show(process, events, refusals, closing) => false,
            () = &mut typed => true,
        };
        screen
            .close(async {
                if !heard_all {
                    typed.await;
                }
            })
            .await;
        drop(permit);
    }))
}

async fn find(service: &Service, id: &SessionId, wanted: &Wanted) -> Result<Process> {
    let size = wanted.size()?;
    let Some(process) = wanted.process.map(ProcessId) else {
        return Ok(service.start_shell(id, size.unwrap_or(USUAL)).await?);
    };
    let found = service.process(id, process).await?;
    if found.terminal.is_none() {
        return Err(Error::invalid(format!("process {process} has no terminal")));
    }
    if let (Some(size), None) = (size, &found.end) {
        match service.resize_process(id, process, size).await {
            // Ended meanwhile: its last words and its end are still to be shown.
            Err(error) if error.code == Code::NotFound => {}
            resized => resized?,
        }
    }
    Ok(found)
}

/// Does what the client says, until it says no more. What is typed waits for the guest, and then
/// the client is not listened to.
async fn hear(
    service: Service,
    (id, process): (SessionId, ProcessId),
    mut stream: SplitStream<WebSocket>,
    refusals: mpsc::Sender<Problem>,
    alive: Alive,
) {
    loop {
        alive.tell();
        let message = tokio::select! {
            message = stream.next() => message,
            () = alive.doubted() => return,
        };
        let Some(Ok(message)) = message else { return };
        let done = match message {
            Message::Binary(data) => service.write_stdin(&id, process, data).await,
            Message::Text(text) => match control(&text) {
                Ok(TerminalControl::Resize(size)) => {
                    service.resize_process(&id, process, size).await
                }
                Err(problem) => {
                    let _ = refusals.try_send(problem);
                    Ok(())
                }
            },
            Message::Ping(_) | Message::Pong(_) => Ok(()),
            Message::Close(_) => return,
        };
        if let Err(error) = done {
            // That the process has ended is told elsewhere. More than a few are not told.
            let _ = refusals.try_send(Error::from(error).problem());
        }
    }
}

/// When the client last gave a sign of life: said something, or took something it was shown. An
/// answer to a ping can be far behind what a slow client has yet to read.
#[derive(Debug, Clone)]
struct Alive(watch::Sender<Instant>);

impl Default for Alive {
    fn default() -> Self {
        Self(watch::Sender::new(Instant::now()))
    }
}

impl Alive {
    fn tell(&self) {
        self.0.send_replace(Instant::now());
    }

    /// Returns when there has been no sign for too long.
    async fn doubted(&self) {
        loop {
            let deadline = *self.0.borrow() + SILENCE;
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

fn control(text: &str) -> Result<TerminalControl, Problem> {
    serde_json::from_str(text)
        .map_err(|error| Error::invalid(format!("a text frame is a control: {error}")).problem())
}

/// The client's end for what is shown.
struct Screen {
    sink: SplitSink<WebSocket, Message>,
    next: u64,
    alive: Alive,
}

/// The client is gone.
struct Gone;

impl Screen {
    /// Shows everything, until the process, the client or the server has ended.
    async fn show(
        &mut self,
        process: Process,
        mut events: Events,
        mut refusals: mpsc::Receiver<Problem>,
        closing: CancellationToken,
    ) {
        let mut ask = interval(ASK);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = self.tell(&TerminalEvent::Attached(process)).await;
        while told.is_ok() {
            told = tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.pass(event).await,
                    None => return,
                },
                Some(problem) = refusals.recv() => self.tell(&TerminalEvent::Error(problem)).await,
                _ = ask.tick() => self.send(Message::Ping(Bytes::new())).await,
                () = closing.cancelled() => return,
            };
        }
    }

    async fn pass(&mut self, event: Result<Event, EngineError>) -> Result<(), Gone> {
        match event {
            Ok(Event::Output { offset, mut data, .. }) => {
                if offset > self.next {
                    self.tell(&TerminalEvent::Skipped { offset }).await?;
                }
                self.next = offset + data.len() as u64;
                while !data.is_empty() {
                    let part = data.split_to(data.len().min(MOST));
                    self.send(Message::Binary(part)).await?;
                    self.alive.tell();
                }
                Ok(())
            }
            Ok(Event::Ended(outcome)) => {
                self.tell(&TerminalEvent::Ended(Service::process_end(outcome))).await
            }
            Err(error) => {
                let problem = Error::from(atoll_service::Error::from(error)).problem();
                self.tell(&TerminalEvent::Error(problem)).await
            }
        }
    }

    async fn tell(&mut self, event: &TerminalEvent) -> Result<(), Gone> {
        let text = serde_json::to_string(event).map_err(|_| Gone)?;
        self.send(Message::Text(Utf8Bytes::from(text))).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Gone> {
        self.sink.send(message).await.map_err(|_| Gone)
    }

    /// Says goodbye, and hears it said.
    async fn close(mut self, answered: impl Future<Output = ()>) {
        let code = close_code::NORMAL;
        let frame = CloseFrame { code, reason: Utf8Bytes::default() };
        let _ = tokio::time::timeout(GOODBYE, async {
            if self.send(Message::Close(Some(frame))).await.is_ok() {
                answered.await;
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_is_a_control_and_nothing_else() {
        let size = TerminalSize { rows: 5, columns: 7 };
        let good = r#"{"resize":{"rows":5,"columns":7}}"#;
        assert_eq!(control(good).unwrap(), TerminalControl::Resize(size));

        for bad in [
            "",
            "{}",
            "resize",
            r#"{"resize":{}}"#,
            r#"{"resize":{"rows":5}}"#,
            r#"{"resize":{"rows":5,"columns":-1}}"#,
            r#"{"resize":{"rows":5,"columns":70000}}"#,
            r#"{"resize":{"rows":5,"columns":7,"depth":1}}"#,
            r#"{"stop":{}}"#,
        ] {
            assert_eq!(control(bad).unwrap_err().code, "invalid_request", "{bad}");
        }
    }

    #[test]
    fn a_size_is_two_numbers_or_none() {
        let wanted = |rows, columns| Wanted { process: None, offset: None, rows, columns };

        assert_eq!(wanted(None, None).size().unwrap(), None);
        assert!(wanted(Some(1), None).size().is_err());
        assert!(wanted(None, Some(1)).size().is_err());
        let size = TerminalSize { rows: 1, columns: 2 };
        assert_eq!(wanted(Some(1), Some(2)).size().unwrap(), Some(size));
    }
}
