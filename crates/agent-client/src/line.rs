//! A connection to an agent that is made again when it breaks.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use atoll_agent_protocol::{
    message::{Hello, Request, Response, VERSION, request::Call, response::Answer},
    mux::{self, Mux, Stream},
};
use atoll_engine::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;

use crate::{Warden, failure};

/// How long an agent may take to say who it is.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);
/// Bytes of an answer, unless more is expected.
const ANSWER: usize = 1 << 20;
/// How long a call may wait for others to end.
const BUSY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Line {
    warden: Arc<dyn Warden>,
    current: Mutex<Option<Mux>>,
    /// Held while connecting, so that many callers make one connection.
    turn: Semaphore,
}

impl Line {
    pub(crate) fn new(warden: Arc<dyn Warden>) -> Self {
        Self { warden, current: Mutex::new(None), turn: Semaphore::new(1) }
    }

    /// Begins a call. A connection found broken is made again; one that breaks later is not.
    pub(crate) async fn begin(&self, call: Call) -> Result<Stream> {
        let stream = match self.open().await? {
            Ok(stream) => stream,
            Err(_broken_meanwhile) => self.open().await?.map_err(failure::of_stream)?,
        };
        stream.set_limit(ANSWER);
        stream.send(&Request { call: Some(call) }).await.map_err(failure::of_stream)?;
        Ok(stream)
    }

    /// Connects now if it is not connected.
    pub(crate) async fn ready(&self) -> Result<()> {
        self.mux().await.map(drop)
    }

    async fn open(&self) -> Result<Result<Stream, mux::Error>> {
        let mux = self.mux().await?;
        tokio::time::timeout(BUSY, mux.open()).await.map_err(|_| {
            Error::new(ErrorKind::Exhausted, "too many calls to one sandbox at the same time")
        })
    }

    async fn mux(&self) -> Result<Mux> {
        if let Some(mux) = self.connected() {
            return Ok(mux);
        }
        let _turn = self.turn.acquire().await.expect("it is never closed");
        if let Some(mux) = self.connected() {
            return Ok(mux);
        }
        let mux = within(HANDSHAKE, self.connect()).await?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(mux.clone());
        Ok(mux)
    }

    fn connected(&self) -> Option<Mux> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|mux| !mux.is_closed()).cloned()
    }

    async fn connect(&self) -> Result<Mux> {
        let mux = Mux::client(self.warden.connect().await?);
        let stream = mux.open().await.map_err(failure::of_stream)?;
        let hello = Request { call: Some(Call::Hello(Hello { version: VERSION })) };
        stream.send(&hello).await.map_err(failure::of_stream)?;
        stream.finish();
        match answer(&stream).await? {
            Answer::Hello(Hello { version: VERSION }) => Ok(mux),
            Answer::Hello(Hello { version }) => Err(Error::unsupported(format!(
                "the sandbox's agent speaks version {version} of the protocol, not {VERSION}"
            ))),
            _ => Err(failure::nonsense()),
        }
    }
}

/// The next answer, which must be there and no failure.
pub(crate) async fn answer(stream: &Stream) -> Result<Answer> {
    next(stream).await?.ok_or_else(failure::nonsense)
}

/// The next answer; none at the end; a failure told by the agent is an error.
pub(crate) async fn next(stream: &Stream) -> Result<Option<Answer>> {
    match stream.recv::<Response>().await.map_err(failure::of_stream)? {
        None => Ok(None),
        Some(Response { answer: Some(Answer::Error(error)) }) => Err(failure::of_agent(&error)),
        Some(Response { answer: Some(answer) }) => Ok(Some(answer)),
        Some(Response { answer: None }) => Err(failure::nonsense()),
    }
}

/// Gives up waiting for an agent after this long.
pub(crate) async fn within<T>(limit: Duration, what: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(limit, what).await.unwrap_or_else(|_| Err(failure::silence()))
}
