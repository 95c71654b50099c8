//! Ports of a session's sandbox.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
};

use atoll_engine::{ErrorKind, Ports, Tunnel};
use atoll_types::id::SessionId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    Code, Error, Result, Service,
    live::{Held, Live},
};

/// A connection to a program in a sandbox. The session is in use as long as it is held.
pub struct PortStream {
    tunnel: Tunnel,
    _held: Held,
}

impl Service {
    /// Connects to a TCP port of the sandbox's own loopback.
    ///
    /// Dropping the stream ends the program's connection. [`Code::PortClosed`] if nothing listens
    /// there.
    pub async fn connect_port(&self, id: &SessionId, port: u16) -> Result<PortStream> {
        let live = self.live(id).await?;
        let held = live.hold();
        let connected = ports_of(&live)?.connect(port).await;
        let tunnel = connected.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::new(Code::PortClosed, error.message())
                .hint("start a program that listens there, on 127.0.0.1, ::1 or any address"),
            _ => error.into(),
        })?;
        Ok(PortStream { tunnel, _held: held })
    }

    /// The TCP ports on which something in the sandbox listens, lowest first.
    pub async fn ports(&self, id: &SessionId) -> Result<Vec<u16>> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(ports_of(&live)?.listening().await?)
    }
}

fn ports_of(live: &Live) -> Result<&dyn Ports> {
    live.sandbox.ports().ok_or_else(|| {
        let message = format!(
            "a sandbox of the `{}` engine has no ports of its own: they would be the host's",
            live.engine.name()
        );
        Error::new(Code::Unsupported, message).hint("use an engine that isolates")
    })
}

impl AsyncRead for PortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tunnel).poll_read(context, buffer)
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tunnel).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tunnel).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tunnel).poll_shutdown(context)
    }
}

impl fmt::Debug for PortStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortStream").finish_non_exhaustive()
    }
}
