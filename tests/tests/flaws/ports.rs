//! Ports with one flaw. The engine underneath has none of its own, so these are the host's, which
//! is a flaw of itself.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use async_trait::async_trait;
use atoll_engine::{Error, Ports, Result, Tunnel};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::flaw::Flaw;

#[derive(Debug)]
pub(crate) struct FlawedPorts(Flaw);

impl FlawedPorts {
    /// None if the flaw is elsewhere.
    pub(crate) fn new(flaw: Flaw) -> Option<Self> {
        let here = matches!(
            flaw,
            Flaw::ReachesTheHost
                | Flaw::OpensAnyNumberOfTunnels
                | Flaw::EndsBothDirections
                | Flaw::KeepsConnections
                | Flaw::TellsNoReasonOfATunnel
        );
        here.then_some(Self(flaw))
    }
}

#[async_trait]
impl Ports for FlawedPorts {
    async fn connect(&self, port: u16) -> Result<Tunnel> {
        let nobody = || Error::not_found(format!("nothing listens on port {port}"));
        let socket = TcpStream::connect(("127.0.0.1", port)).await.map_err(|_| nobody())?;
        Ok(Box::new(FlawedTunnel { socket: Some(socket), flaw: self.0, over: false }))
    }

    async fn listening(&self) -> Result<Vec<u16>> {
        Ok(Vec::new())
    }
}

struct FlawedTunnel {
    /// There until it is dropped.
    socket: Option<TcpStream>,
    flaw: Flaw,
    over: bool,
}

impl FlawedTunnel {
    fn socket(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(self.socket.as_mut().expect("it is there until it is dropped"))
    }
}

impl AsyncRead for FlawedTunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.over {
            return Poll::Ready(Ok(()));
        }
        self.socket().poll_read(cx, buffer)
    }
}

impl AsyncWrite for FlawedTunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket().poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.over = self.flaw == Flaw::EndsBothDirections;
        self.socket().poll_shutdown(cx)
    }
}

impl Drop for FlawedTunnel {
    fn drop(&mut self) {
        if self.flaw == Flaw::KeepsConnections {
            std::mem::forget(self.socket.take());
        }
    }
}
