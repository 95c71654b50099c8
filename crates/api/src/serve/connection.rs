//! One HTTP connection.

use std::{convert::Infallible, io, pin::pin, time::Duration};

use axum::{Router, body::Body, extract::Request};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::patient::Patient;
use crate::peer::Peer;

/// How long a request's head may take to come, and how long a connection may be idle between two.
const HEAD: Duration = Duration::from_secs(30);

/// The longest head of a request.
const LONGEST_HEAD: usize = 64 << 10;

/// Serves requests until the client leaves, misbehaves, or the server stops.
///
/// A client that hangs up drops the handler of its request; what that means is decided there.
pub(super) async fn serve<S>(
    stream: S,
    peer: Peer,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        let router = router.clone();
        async move { Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|e| match e {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(Patient::new(stream)), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_err(io::Error::other)
}
