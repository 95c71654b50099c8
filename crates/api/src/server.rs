//! The server itself: that it lives, which one it is, what it counted, what it can be asked.

use atoll_types::{
    key::Scope::Read,
    server::{Health, Version},
};
use axum::{Json as Answer, extract::State, http::header::CONTENT_TYPE, response::IntoResponse};

use crate::{
    access::{
        Access::{Anyone, Key},
        Routes,
    },
    app::App,
    error::{Error, Result},
    openapi,
};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/healthz", Anyone, health)
        .get("/api/version", Key(Read), version)
        .get("/metrics", Key(Read), metrics)
        .get("/openapi.json", Key(Read), description)
}

/// Whether the server lives.
#[utoipa::path(get, path = "/healthz", tag = "server", responses((status = 200, body = Health)))]
pub(crate) async fn health() -> Answer<Health> {
    Answer(Health { status: "ok".to_owned() })
}

/// Which server this is.
#[utoipa::path(
    get, path = "/api/version", tag = "server", responses((status = 200, body = Version))
)]
pub(crate) async fn version(State(app): State<App>) -> Answer<Version> {
    Answer(Version {
        version: app.settings.version.clone(),
        pid: std::process::id(),
        started_at: app.started_at,
    })
}

/// The server's figures, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(app): State<App>) -> Result<impl IntoResponse> {
    let figures = app
        .settings
        .metrics
        .as_ref()
        .ok_or_else(|| Error::unavailable("this server does not count anything"))?;
    figures.run_upkeep();
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], figures.render()))
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "server",
    responses((status = 200, body = Object, content_type = "application/json"))
)]
pub(crate) async fn description() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], openapi::TEXT)
}
