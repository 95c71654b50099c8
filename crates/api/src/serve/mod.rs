//! Puts the router behind sockets, and bounds what a connection may cost.

mod connection;
mod lingering;
mod patient;
mod tls;
mod unix;

use std::{fmt, io, sync::Arc, time::Duration};

use axum::Router;
use tokio::{
    net::{TcpListener, TcpStream, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::peer::Peer;

#[cfg(test)]
pub(crate) use connection::serve as connection;
pub(crate) use patient::Unhurried;
pub use tls::{Tls, Unusable};
pub use unix::UnixSocket;

/// Connections of one listener at a time; more wait to be accepted. Each listener has its own, so
/// that the network cannot lock the operator out.
const CONNECTIONS: usize = 1024;

/// How long requests may go on once the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// How long to wait after a failed accept: most often there are no descriptors left.
const BREATH: Duration = Duration::from_millis(100);

/// Where to listen.
pub enum Listener {
    /// The network, in the clear or not. A key is always needed.
    Tcp(TcpListener, Option<Tls>),
    /// The private socket: the server's own user, without a key.
    Unix(UnixSocket),
}

enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Serves until `shutdown`, then lets requests finish for a few seconds.
///
/// Returns when no connection is left.
pub async fn serve(listeners: Vec<Listener>, router: Router, shutdown: CancellationToken) {
    let mut tasks = JoinSet::new();
    for listener in listeners {
        tasks.spawn(listen(listener, router.clone(), shutdown.clone()));
    }
    tasks.join_all().await;
}

async fn listen(listener: Listener, router: Router, shutdown: CancellationToken) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            // Those that ended are not kept.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(&room) => accepted,
        };
        match accepted {
            Ok((permit, accepted)) => {
                let (router, shutdown) = (router.clone(), shutdown.clone());
                connections.spawn(listener.connection(accepted, permit, router, shutdown));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        tracing::info!(connections = connections.len(), "cutting connections that did not end");
    }
    connections.shutdown().await;
}

impl Listener {
    async fn accept(&self, room: &Arc<Semaphore>) -> io::Result<(OwnedSemaphorePermit, Accepted)> {
        let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
        let accepted = match self {
            Self::Tcp(listener, _) => Accepted::Tcp(listener.accept().await?.0),
            Self::Unix(socket) => Accepted::Unix(socket.accept().await?),
        };
        Ok((permit, accepted))
    }

    /// Serves one connection to its end.
    fn connection(
        &self,
        accepted: Accepted,
        permit: OwnedSemaphorePermit,
        router: Router,
        shutdown: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let tls = match self {
            Self::Tcp(_, tls) => tls.clone(),
            Self::Unix(_) => None,
        };
        async move {
            let served = match accepted {
                Accepted::Tcp(stream) => network(stream, permit, tls, router, shutdown).await,
                Accepted::Unix(stream) => operator(stream, permit, router, shutdown).await,
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection broke");
            }
        }
    }
}

async fn network(
    stream: TcpStream,
    permit: OwnedSemaphorePermit,
    tls: Option<Tls>,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let peer = Peer::Network {
        from: stream.peer_addr()?,
        reached: stream.local_addr()?.ip(),
        secure: tls.is_some(),
    };
    match tls {
        None => connection::serve(stream, permit, peer, router, shutdown).await,
        Some(tls) => {
            let stream = tls.accept(stream).await?;
            connection::serve(stream, permit, peer, router, shutdown).await
        }
    }
}

async fn operator(
    stream: UnixStream,
    permit: OwnedSemaphorePermit,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let peer = unix::judge(&stream)?;
    connection::serve(stream, permit, peer, router, shutdown).await
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(listener, tls) => {
                f.debug_struct("Tcp").field("at", listener).field("tls", &tls.is_some()).finish()
            }
            Self::Unix(socket) => socket.fmt(f),
        }
    }
}
