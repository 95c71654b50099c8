//! One request to a program in a sandbox, over a connection of its own.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, Uri, header::UPGRADE},
    response::Response,
};
use futures_util::TryStreamExt as _;
use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep_until},
};
use tokio_util::task::AbortOnDropHandle;

use super::{Gate, answer::AnswerBody, headers};
use crate::{
    app::Settings,
    error::{Error, Result},
    upgrade,
};

/// The longest head of an answer, and the most headers in it.
const LONGEST_HEAD: usize = 64 << 10;
const MOST_HEADERS: usize = 128;
/// The only protocol, besides HTTP, that is passed on. Others can hide requests from what looks
/// at them here.
pub(super) const WEBSOCKET: &str = "websocket";

/// Passes a request on and its answer back. The program is asked nothing that was not asked here:
/// what it is sent is written anew.
pub(super) async fn forward<S>(
    gate: &Gate,
    mut request: Request,
    stream: S,
    settings: &Settings,
) -> Result<Response>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let websocket = upgrade::asks_for(request.headers(), WEBSOCKET);
    let client = upgrade::take(&mut request).filter(|_| websocket);
    let progress = Progress::default();
    let request = outgoing(gate, request, client.is_some(), &progress)?;
    let io = TokioIo::new(stream);
    let handshake = http1::Builder::new()
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .handshake::<_, Body>(io)
        .await;
    let (mut sender, connection) = handshake.map_err(|error| garbled(gate, &error))?;
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        // How it ended is told by the answer or its body.
        let _ = connection.with_upgrades().await;
    }));
    let answer = tokio::select! {
        answer = sender.send_request(request) => answer.map_err(|error| garbled(gate, &error))?,
        () = progress.stalled(settings.port_timeout) => return Err(silent(gate)),
    };
    match (answer.status(), client) {
        (StatusCode::SWITCHING_PROTOCOLS, Some(client)) => {
            switch(gate, answer, client, connection, settings)
        }
        (StatusCode::SWITCHING_PROTOCOLS, None) => {
            Err(Error::bad_gateway(format!("{} answered what nobody asked", name(gate))))
        }
        _ => Ok(incoming(gate, answer, connection)),
    }
}

/// The request as the program gets it.
fn outgoing(
    gate: &Gate,
    request: Request,
    websocket: bool,
    progress: &Progress,
) -> Result<hyper::Request<Body>> {
    let (parts, body) = request.into_parts();
    let rest = parts.uri.path().strip_prefix(&gate.prefix).filter(|rest| rest.starts_with('/'));
    let rest = rest.ok_or_else(|| Error::not_found("there is nothing at this path"))?;
    let target = match parts.uri.query() {
        Some(query) => format!("{rest}?{query}"),
        None => rest.to_owned(),
    };
    let target: Uri =
        target.parse().map_err(|_| Error::invalid("this path cannot be asked for"))?;
    let mut request = hyper::Request::new(progress.noted(body));
    *request.method_mut() = parts.method;
    *request.uri_mut() = target;
    *request.headers_mut() = headers::to_program(gate, &parts.headers);
    if websocket {
        headers::ask_for_websocket(request.headers_mut());
    }
    Ok(request)
}

/// The answer as the client gets it.
fn incoming(
    gate: &Gate,
    answer: hyper::Response<Incoming>,
    connection: AbortOnDropHandle<()>,
) -> Response {
    let (parts, body) = answer.into_parts();
    let mut response = Response::new(Body::new(AnswerBody { body, _connection: connection }));
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers::from_program(gate, &parts.headers);
    response
}

/// Both connections become a `WebSocket`, which is passed on as bytes.
fn switch(
    gate: &Gate,
    mut answer: hyper::Response<Incoming>,
    client: upgrade::Upgrade,
    connection: AbortOnDropHandle<()>,
    settings: &Settings,
) -> Result<Response> {
    let other = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(WEBSOCKET.as_bytes());
    if answer.headers().get(UPGRADE).is_none_or(other) {
        return Err(Error::bad_gateway(format!("{} answered what nobody asked", name(gate))));
    }
    let program = hyper::upgrade::on(&mut answer);
    let settings = settings.clone();
    tokio::spawn(async move {
        if let Ok(program) = program.await {
            client.carry(TokioIo::new(program), &settings);
        }
        drop(connection);
    });
    let mut response = upgrade::switching(HeaderValue::from_static(WEBSOCKET));
    response.headers_mut().extend(headers::from_program(gate, answer.headers()));
    Ok(response)
}

fn name(gate: &Gate) -> String {
    format!("the program on port {}", gate.port)
}

fn garbled(gate: &Gate, error: &hyper::Error) -> Error {
    tracing::debug!(port = gate.port, %error, "a program in a sandbox does not speak HTTP");
    let name = name(gate);
    if error.is_parse_too_large() {
        return Error::bad_gateway(format!("{name} answered with a head that is too long"));
    }
    if error.is_parse() {
        return Error::bad_gateway(format!("{name} does not answer in HTTP"))
            .hint("for other protocols, use `atoll port-forward`");
    }
    Error::bad_gateway(format!("{name} hung up before it answered"))
}

fn silent(gate: &Gate) -> Error {
    Error::no_answer(format!("{} does not answer", name(gate)))
        .hint("the server's setting `server.port_timeout` says how long it may take")
}

/// When the program last took some of the request.
#[derive(Debug, Clone)]
struct Progress(Arc<Mutex<Instant>>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Progress {
    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body, each piece of which is progress.
    fn noted(&self, body: Body) -> Body {
        if body.is_end_stream() {
            return body;
        }
        let progress = self.clone();
        Body::from_stream(body.into_data_stream().inspect_ok(move |_: &Bytes| {
            *progress.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }))
    }

    /// Returns when there was none for so long.
    async fn stalled(&self, patience: Duration) {
        loop {
            let until = self.last() + patience;
            sleep_until(until).await;
            if self.last() + patience <= until {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
