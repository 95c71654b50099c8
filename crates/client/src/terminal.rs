//! Terminals of a session, over a WebSocket.

use atoll_types::{
    id::{ProcessId, SessionId},
    process::{Process, ProcessEnd, TerminalSize},
    terminal::{TerminalControl, TerminalEvent},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use hyper::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        protocol::{Role, WebSocketConfig},
    },
};

use crate::{
    Client, Tunnel,
    error::{Error, Refused, Result},
    query,
    sessions::at,
};

/// The longest message of a server.
const MESSAGE: usize = 1 << 20;

/// Which terminal to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opening {
    /// A process that has one; else a new one, with the session's shell.
    pub process: Option<ProcessId>,
    /// Where in all it ever wrote to begin.
    pub offset: u64,
    pub size: Option<TerminalSize>,
}

/// A terminal that is shown. Dropping it changes nothing for what runs there.
#[derive(Debug)]
pub struct Terminal {
    /// What runs there.
    pub process: Process,
    output: TerminalOutput,
    input: TerminalInput,
}

/// What a terminal shows.
#[derive(Debug)]
pub struct TerminalOutput {
    stream: SplitStream<WebSocketStream<Tunnel>>,
    over: bool,
}

/// What is typed there.
#[derive(Debug)]
pub struct TerminalInput {
    sink: SplitSink<WebSocketStream<Tunnel>, Message>,
}

/// One thing that happened at a terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    Bytes(Bytes),
    /// What follows is not what comes next: bytes up to this one of all are no longer kept.
    Skipped(u64),
    /// Something was not done, such as a resize.
    Refused(Refused),
    /// The last.
    Ended(ProcessEnd),
}

impl Client {
    /// Uses a terminal of a session.
    pub async fn terminal(&self, id: &SessionId, opening: Opening) -> Result<Terminal> {
        let mut pairs = vec![("offset", opening.offset.to_string())];
        pairs.extend(opening.process.map(|process| ("process", process.to_string())));
        if let Some(TerminalSize { rows, columns }) = opening.size {
            pairs.extend([("rows", rows.to_string()), ("columns", columns.to_string())]);
        }
        let pairs = pairs.iter().map(|(name, value)| (*name, value.as_str()));
        let target = query::with(&at(id, "/terminal"), pairs);
        let tunnel = self.upgrade(&target, "websocket", headers()?).await?;
        let settings = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE))
            .max_frame_size(Some(MESSAGE));
        let socket = WebSocketStream::from_raw_socket(tunnel, Role::Client, Some(settings)).await;
        let (sink, stream) = socket.split();
        let mut output = TerminalOutput { stream, over: false };
        match output.message().await? {
            Some(Ok(TerminalEvent::Attached(process))) => {
                Ok(Terminal { process, output, input: TerminalInput { sink } })
            }
            _ => Err(Error::Garbled("it does not say which terminal this is".to_owned())),
        }
    }
}

fn headers() -> Result<HeaderMap> {
    // Against caches that take this for a page; it keeps no secret.
    let key = STANDARD.encode(std::process::id().to_le_bytes().repeat(4));
    let key = HeaderValue::try_from(key).map_err(|error| Error::Garbled(error.to_string()))?;
    let version = HeaderValue::from_static("13");
    Ok(HeaderMap::from_iter([(SEC_WEBSOCKET_KEY, key), (SEC_WEBSOCKET_VERSION, version)]))
}

impl Terminal {
    /// The two directions, which do not wait for each other.
    pub fn split(self) -> (TerminalOutput, TerminalInput) {
        (self.output, self.input)
    }
}

impl TerminalOutput {
    /// What is shown next; none after the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Shown>> {
        if self.over {
            return Ok(None);
        }
        let shown = match self.message().await? {
            Some(Err(data)) => Shown::Bytes(data),
            Some(Ok(TerminalEvent::Skipped { offset })) => Shown::Skipped(offset),
            Some(Ok(TerminalEvent::Error(problem))) => Shown::Refused(Refused::new(200, problem)),
            Some(Ok(TerminalEvent::Ended(end))) => {
                self.over = true;
                Shown::Ended(end)
            }
            Some(Ok(TerminalEvent::Attached(_))) => {
                return Err(Error::Garbled("it is attached twice".to_owned()));
            }
            None => return Err(Error::broken("the server hung up")),
        };
        Ok(Some(shown))
    }

    /// An event, or the bytes that came instead of one.
    async fn message(&mut self) -> Result<Option<Result<TerminalEvent, Bytes>>> {
        loop {
            return Ok(Some(
                match self.stream.next().await.transpose().map_err(Error::broken)? {
                    Some(Message::Binary(data)) => Err(data),
                    Some(Message::Text(text)) => Ok(serde_json::from_str(&text)
                        .map_err(|error| Error::Garbled(error.to_string()))?),
                    Some(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                    Some(Message::Close(_)) | None => return Ok(None),
                },
            ));
        }
    }
}

impl TerminalInput {
    /// Types; waits while the guest does not read.
    pub async fn write(&mut self, data: impl Into<Bytes>) -> Result<()> {
        self.send(Message::Binary(data.into())).await
    }

    /// Sets the size. What is wrong with it is told as [`Shown::Refused`].
    pub async fn resize(&mut self, size: TerminalSize) -> Result<()> {
        let control = serde_json::to_string(&TerminalControl::Resize(size))
            .map_err(|error| Error::Garbled(error.to_string()))?;
        self.send(Message::Text(control.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<()> {
        match self.sink.send(message).await {
            Err(tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed) => {
                Err(Error::broken("the server hung up"))
            }
            sent => sent.map_err(Error::broken),
        }
    }
}
