//! Many flow-controlled streams of messages over one byte stream.
//!
//! ```text
//! client ── open ──▶ server      each stream, each way: data (within a window), then finish,
//!        ◀─ data ──▶             or reset at any time; credit gives the window back as it is read
//! ```
//!
//! Own frames rather than HTTP/2: half the latency and memory, and bounded against a hostile peer
//! without tuning. Either side may be hostile to the other. A peer that breaks a rule loses the
//! connection ([`Error::Protocol`]); one that stops reading one stream holds up no other; what is
//! kept for a peer never exceeds a window per stream and direction, and a message that is being
//! read. A stream ends when both sides have finished or reset it, so the number of open streams is
//! known to both.

mod drive;
mod error;
mod slot;
mod state;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
pub use error::{Error, Violation};
use prost::Message;
use slot::Signals;
use state::{Role, State};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Notify,
};

/// Streams open at one time.
pub const MAX_STREAMS: usize = 256;
/// Bytes of one message.
pub const MAX_MESSAGE: usize = 4 << 20;
/// What may be under way or unread, of each stream and direction.
const WINDOW: usize = 256 << 10;
/// What a frame of data costs besides its bytes, so that empty ones are not free.
const FRAME_COST: usize = 64;

/// One end of a connection. It is closed when this, its clones and all its streams are dropped,
/// whatever was still to be sent.
#[derive(Clone)]
pub struct Mux {
    handle: Arc<Handle>,
}

/// One call: messages both ways.
///
/// Dropped before both sides have finished, it is reset: the peer's calls on it fail, and what was
/// not yet sent is not, unless [`finish`](Self::finish) was called.
pub struct Stream {
    id: u32,
    signals: Arc<Signals>,
    handle: Arc<Handle>,
}

/// What the driver shares with all handles.
struct Connection {
    state: Mutex<State>,
    /// There is something to write.
    work: Notify,
    /// A stream has arrived, or none will.
    arrived: Notify,
    /// A stream may be opened, or none can.
    room: Notify,
    ended: Notify,
    /// Nobody has a handle any more.
    abandoned: Notify,
}

/// Closes the connection when the last one is gone.
struct Handle(Arc<Connection>);

impl Mux {
    /// The end that opens streams. Spawns a task that carries them.
    pub fn client<T: AsyncRead + AsyncWrite + Send + 'static>(io: T) -> Self {
        Self::new(io, Role::Client)
    }

    /// The end that accepts them. Spawns a task that carries them.
    pub fn server<T: AsyncRead + AsyncWrite + Send + 'static>(io: T) -> Self {
        Self::new(io, Role::Server)
    }

    fn new<T: AsyncRead + AsyncWrite + Send + 'static>(io: T, role: Role) -> Self {
        let connection = Arc::new(Connection {
            state: Mutex::new(State::new(role)),
            work: Notify::new(),
            arrived: Notify::new(),
            room: Notify::new(),
            ended: Notify::new(),
            abandoned: Notify::new(),
        });
        tokio::spawn(drive::run(io, Arc::clone(&connection)));
        Self { handle: Arc::new(Handle(connection)) }
    }

    /// Opens a stream; waits while there are [`MAX_STREAMS`].
    pub async fn open(&self) -> Result<Stream, Error> {
        let connection = &self.handle.0;
        let (id, signals) = connection.when(&connection.room, State::open).await?;
        Ok(self.stream(id, signals))
    }

    /// The next stream the peer opened; none when the connection has ended.
    pub async fn accept(&self) -> Option<Stream> {
        let connection = &self.handle.0;
        let (id, signals) = connection.when(&connection.arrived, State::accept).await.ok()?;
        Some(self.stream(id, signals))
    }

    /// Returns when the connection has ended, with the reason.
    pub async fn closed(&self) -> Error {
        let connection = &self.handle.0;
        connection.when(&connection.ended, |state| state.ended.clone()).await
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.handle.0.locked(|state| state.ended.is_some())
    }

    /// Ends the connection and every stream at once.
    pub fn close(&self) {
        self.handle.0.end(Error::Closed);
        self.handle.0.abandoned.notify_one();
    }

    fn stream(&self, id: u32, signals: Arc<Signals>) -> Stream {
        Stream { id, signals, handle: Arc::clone(&self.handle) }
    }
}

impl Stream {
    /// Sends a message; waits while the peer does not read.
    ///
    /// Dropping the future may leave half a message sent, after which the stream takes no more. So
    /// does a second `send` before the first has returned.
    pub async fn send<M: Message>(&self, message: &M) -> Result<(), Error> {
        if message.encoded_len() > MAX_MESSAGE {
            return Err(Error::TooLong);
        }
        let mut bytes = Bytes::from(message.encode_to_vec());
        let connection = &self.handle.0;
        connection.locked(|state| match state.ended.clone() {
            Some(error) => Err(error),
            None => state.with(self.id, slot::Slot::begin),
        })?;
        let write = |state: &mut State| {
            if let Some(error) = state.ended.clone() {
                return Some(Err(error));
            }
            match state.with(self.id, |slot| slot.write(&mut bytes)) {
                Ok(false) => None,
                Ok(true) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            }
        };
        connection.when(&self.signals.writable, write).await
    }

    /// The next message; none when the peer has finished.
    ///
    /// Dropping the future loses nothing. What had wholly arrived before the connection ended is
    /// still there.
    pub async fn recv<M: Message + Default>(&self) -> Result<Option<M>, Error> {
        let read = |state: &mut State| {
            let ended = state.ended.clone();
            state.with(self.id, slot::Slot::read).or(ended.map(Err))
        };
        let Some(bytes) = self.handle.0.when(&self.signals.readable, read).await? else {
            return Ok(None);
        };
        M::decode(bytes).map(Some).map_err(Error::Malformed)
    }

    /// Says that no more messages follow. What was sent before still arrives, also if the stream is
    /// dropped now.
    pub fn finish(&self) {
        self.handle.0.locked(|state| {
            if state.ended.is_none() {
                state.with(self.id, slot::Slot::finish);
            }
        });
    }

    /// Returns when the peer will read no more: it gave the stream up, or is gone.
    pub async fn given_up(&self) {
        let over = |state: &mut State| {
            let ended = state.ended.is_some();
            (ended || state.with(self.id, |slot| slot.is_reset())).then_some(())
        };
        self.handle.0.when(&self.signals.readable, over).await;
    }

    /// Takes no message longer than this; a longer one is a [`Violation`]. [`MAX_MESSAGE`] at
    /// first.
    pub fn set_limit(&self, bytes: usize) {
        self.handle.0.locked(|state| state.with(self.id, |slot| slot.limit = bytes));
    }
}

impl Connection {
    /// Does something to the state and wakes whom it concerns.
    fn locked<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let full = !state.has_room();
        let value = action(&mut state);
        if state.wants_to_write() {
            self.work.notify_one();
        }
        if state.has_arrivals() {
            self.arrived.notify_one();
        }
        if full && state.has_room() {
            self.room.notify_waiters();
        }
        value
    }

    /// Tries until there is an answer, each time `signal` is given.
    async fn when<T>(
        &self,
        signal: &Notify,
        mut attempt: impl FnMut(&mut State) -> Option<T>,
    ) -> T {
        loop {
            let mut changed = std::pin::pin!(signal.notified());
            changed.as_mut().enable();
            if let Some(value) = self.locked(&mut attempt) {
                return value;
            }
            changed.await;
        }
    }

    fn end(&self, reason: Error) {
        self.locked(|state| state.end(reason));
        self.arrived.notify_waiters();
        self.room.notify_waiters();
        self.ended.notify_waiters();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.abandoned.notify_one();
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.handle.0.locked(|state| state.with(self.id, slot::Slot::release));
    }
}

// The state holds what is sent and received, which is nobody's to print.
impl fmt::Debug for Mux {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mux").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("id", &self.id).finish_non_exhaustive()
    }
}
