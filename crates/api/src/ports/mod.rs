//! `…/ports`: programs in a sandbox that listen, reached over HTTP, WebSocket or as plain bytes.
//!
//! What answers is code nobody has read, and it answers in this server's name: see [`headers`] for
//! what it is told and what it may say.

mod answer;
mod cookies;
mod forward;
mod headers;
mod redirect;

use std::net::IpAddr;

use atoll_types::{
    id::SessionId,
    key::Scope::{Read, Run},
    port::PortList,
};
use axum::{
    Json as Answer,
    extract::{Request, State},
    http::{HeaderValue, header::UPGRADE},
    response::{IntoResponse as _, Response},
};

use crate::{
    access::{Access::Key, Routes},
    app::App,
    error::{Error, Result},
    extract::{Port, Session},
    peer::Peer,
    upgrade,
};

/// The protocol of plain bytes.
const TCP: &str = "tcp";

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/sessions/{id}/ports", Key(Read), list)
        .get("/api/sessions/{id}/ports/{port}", Key(Run), tunnel)
        .any("/api/sessions/{id}/ports/{port}/", Key(Run), proxy_root)
        .any("/api/sessions/{id}/ports/{port}/{*path}", Key(Run), proxy)
}

/// One port of one sandbox, as it is reached through this server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Gate {
    /// `/api/sessions/{id}/ports/{port}`, without a slash at the end.
    prefix: String,
    port: u16,
    /// Who asks, where that is an address.
    from: Option<IpAddr>,
    secure: bool,
}

/// The TCP ports of the sandbox's loopback on which something listens.
#[utoipa::path(
    get, path = "/api/sessions/{id}/ports", tag = "ports",
    params(("id" = SessionId, Path)), responses((status = 200, body = PortList))
)]
pub(crate) async fn list(State(app): State<App>, Session(id): Session) -> Result<Answer<PortList>> {
    Ok(Answer(PortList { ports: app.service.ports(&id).await? }))
}

/// Connect to a port. With `Connection: Upgrade` and `Upgrade: tcp` the answer is 101, and the connection carries the bytes of the sandbox's from then on, either direction until its own end.
#[utoipa::path(
    get, path = "/api/sessions/{id}/ports/{port}", tag = "ports",
    params(("id" = SessionId, Path), ("port" = u16, Path)), responses((status = 101))
)]
pub(crate) async fn tunnel(
    State(app): State<App>,
    Session(id): Session,
    Port(port): Port,
    mut request: Request,
) -> Result<Response> {
    let asked = upgrade::asks_for(request.headers(), TCP);
    let Some(upgrade) = upgrade::take(&mut request).filter(|_| asked) else {
        let mut refusal = Error::upgrade_required("this path is for plain bytes")
            .hint("send `Upgrade: tcp`; for HTTP and WebSockets, put a slash after the port")
            .into_response();
        refusal.headers_mut().insert(UPGRADE, HeaderValue::from_static(TCP));
        return Ok(refusal);
    };
    let stream = app.service.connect_port(&id, port).await?;
    upgrade.carry(stream, &app.settings);
    Ok(upgrade::switching(HeaderValue::from_static(TCP)))
}

/// Ask a program in the sandbox, over HTTP or a WebSocket, with any method. Answers of the program have the header `X-Atoll-Port`; those without it are Atoll's own.
#[utoipa::path(
    get, path = "/api/sessions/{id}/ports/{port}/{path}", tag = "ports",
    params(
        ("id" = SessionId, Path), ("port" = u16, Path),
        ("path" = String, Path, description = "what the program is asked for, slashes and all"),
    ),
    responses((status = 200, description = "The program's answer.", content_type = "*/*"))
)]
pub(crate) async fn proxy(
    State(app): State<App>,
    Session(id): Session,
    Port(port): Port,
    request: Request,
) -> Result<Response> {
    let (from, secure) = match request.extensions().get::<Peer>() {
        Some(Peer::Network { from, secure, .. }) => (Some(from.ip()), *secure),
        Some(Peer::Operator { .. }) | None => (None, false),
    };
    let gate = Gate { prefix: format!("/api/sessions/{id}/ports/{port}"), port, from, secure };
    let stream = app.service.connect_port(&id, port).await?;
    forward::forward(&gate, request, stream, &app.settings).await
}

/// Ask a program in the sandbox for `/`.
#[utoipa::path(
    get, path = "/api/sessions/{id}/ports/{port}/", tag = "ports",
    params(("id" = SessionId, Path), ("port" = u16, Path)),
    responses((status = 200, description = "The program's answer.", content_type = "*/*"))
)]
pub(crate) async fn proxy_root(
    state: State<App>,
    session: Session,
    port: Port,
    request: Request,
) -> Result<Response> {
    proxy(state, session, port, request).await
}
