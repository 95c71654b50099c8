//! One HTTP connection.

use std::{convert::Infallible, io, pin::pin, time::Duration};

use axum::{Router, body::Body, extract::Request};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::{
    lingering::Lingering,
    patient::{Patient, Unhurried},
};
use crate::peer::Peer;

/// How long a request's head may take to come, and how long a connection may be idle between two.
const HEAD: Duration = Duration::from_secs(30);

/// The longest head of a request.
const LONGEST_HEAD: usize = 64 << 10;

/// Serves requests until the client leaves, misbehaves, or the server stops.
///
/// A client that hangs up drops the handler of its request; what that means is decided there.
/// `held` is let go when the connection is closed, also one that was handed on as something else.
pub(crate) async fn serve<S, H>(
    stream: S,
    held: H,
    peer: Peer,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Send + Unpin + 'static,
{
    let unhurried = Unhurried::default();
    let stream = Patient::new(stream, held, unhurried.clone());
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(|body| Body::new(Lingering::new(body)));
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(unhurried.clone());
        let router = router.clone();
        async move { Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|e| match e {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
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

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    const PEER: Peer = Peer::Operator { uid: 0 };

    /// A connection, and the task that serves it. Time stands still unless everyone waits.
    fn connected(shutdown: &CancellationToken) -> (DuplexStream, tokio::task::JoinHandle<()>) {
        let (ours, theirs) = duplex(1 << 16);
        let router = Router::new().route("/", get(|| async { "here" }));
        let shutdown = shutdown.clone();
        let served = tokio::spawn(async move {
            // How it ended is not asked, only that it did.
            let _ = serve(ours, (), PEER, router, shutdown).await;
        });
        (theirs, served)
    }

    async fn ended(served: tokio::task::JoinHandle<()>) {
        tokio::time::timeout(HEAD * 10, served).await.expect("it is given up").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_given_up() {
        let (_client, served) = connected(&CancellationToken::new());

        ended(served).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_never_ends_is_given_up() {
        let (mut client, served) = connected(&CancellationToken::new());
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await.unwrap();

        ended(served).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_done_is_not_kept_for_ever() {
        let (mut client, served) = connected(&CancellationToken::new());
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();

        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();

        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        ended(served).await;
    }

    #[tokio::test]
    async fn an_idle_connection_ends_with_the_server() {
        let shutdown = CancellationToken::new();
        let (mut client, served) = connected(&shutdown);
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();

        shutdown.cancel();

        let served = tokio::time::timeout(Duration::from_secs(20), served);
        served.await.expect("well before it would be given up").unwrap();
    }

    #[tokio::test]
    async fn a_head_without_end_is_refused() {
        let (mut client, _served) = connected(&CancellationToken::new());
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(2 * LONGEST_HEAD));
        let (mut reading, mut writing) = tokio::io::split(&mut client);
        let write = async {
            // It may hang up before it has all.
            let _ = writing.write_all(long.as_bytes()).await;
        };
        let mut answer = String::new();
        let read = reading.read_to_string(&mut answer);

        let ((), read) = tokio::join!(write, read);

        read.unwrap();
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
}
