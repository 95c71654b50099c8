//! The TCP ports of a sandbox.

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Result;

/// Tunnels into one sandbox at one time.
pub const MAX_TUNNELS: usize = 64;

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection to a program in a sandbox.
///
/// - Bytes come in order, none twice, none missing. Either direction can be ended while the other
///   goes on: ours by `shutdown`, the program's by its own.
/// - Who does not read it holds up the program at its other end, and nothing else.
/// - Dropping it ends the program's connection, and with it what was still under way. So does the
///   end of this daemon.
/// - A failure holds an [`Error`](crate::Error) (see [`std::io::Error::get_ref`]): of a sandbox
///   that has ended it is [`Lost`](crate::ErrorKind::Lost).
pub type Tunnel = Box<dyn Duplex>;

/// Ports of the sandbox's own loopback: never the host's, nor another sandbox's.
///
/// The agent is not among what they reach: it listens on none.
#[async_trait]
pub trait Ports: Send + Sync {
    /// Connects to a port, of 127.0.0.1 or else of `::1`.
    ///
    /// - Nobody listens there: [`NotFound`](crate::ErrorKind::NotFound).
    /// - Port 0 is [`Invalid`](crate::ErrorKind::Invalid).
    /// - A tunnel more than [`MAX_TUNNELS`], or a program that listens and lets nobody in, is
    ///   [`Exhausted`](crate::ErrorKind::Exhausted).
    async fn connect(&self, port: u16) -> Result<Tunnel>;

    /// The ports on which [`connect`](Self::connect) finds somebody, lowest first, as far as one
    /// answer may be long.
    async fn listening(&self) -> Result<Vec<u16>>;
}
