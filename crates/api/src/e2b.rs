//! `/api/e2b`: short forms that scripts of E2B users call.

use atoll_types::{
    e2b::{Execute, WriteFile},
    execution::{ExecuteRequest, ExecutionResult},
    file::Listing,
    id::SessionId,
    key::Scope::{Read, Run},
};
use axum::{Json as Answer, body::Body, extract::State, http::StatusCode, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::{
    access::{Access::Key, Routes},
    app::App,
    content,
    error::{Error, Result},
    extract::{Query, Session},
    json::Json,
};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/e2b/execute", Key(Run), execute)
        .get("/api/e2b/files", Key(Read), read)
        .post("/api/e2b/files", Key(Run), write)
        .get("/api/e2b/files/{id}", Key(Read), list)
}

/// Run code in a session, to its end.
#[utoipa::path(
    post, path = "/api/e2b/execute", tag = "e2b", request_body = Execute,
    responses((status = 200, body = ExecutionResult))
)]
pub(crate) async fn execute(
    State(app): State<App>,
    Json(request): Json<Execute>,
) -> Result<Answer<ExecutionResult>> {
    let Execute { session_id, code, language, timeout } = request;
    let language = language.or_else(|| Some("python".to_owned()));
    let request = ExecuteRequest { code: Some(code), language, timeout, ..Default::default() };
    Ok(Answer(app.service.execute(&session_id, request).await?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    session_id: SessionId,
    path: String,
}

/// Download a file of a session.
#[utoipa::path(
    get, path = "/api/e2b/files", tag = "e2b",
    params(("session_id" = SessionId, Query), ("path" = String, Query)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"))
)]
pub(crate) async fn read(State(app): State<App>, Query(file): Query<Wanted>) -> Result<Response> {
    Ok(content::outgoing(app.service.read_file(&file.session_id, &file.path).await?))
}

/// Write a file of a session, given as text or as base64.
#[utoipa::path(
    post, path = "/api/e2b/files", tag = "e2b", request_body = WriteFile,
    responses((status = 204))
)]
pub(crate) async fn write(
    State(app): State<App>,
    Json(request): Json<WriteFile>,
) -> Result<StatusCode> {
    let WriteFile { session_id, path, content, content_base64 } = request;
    let data = match (content, content_base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(encoded)) => STANDARD
            .decode(encoded)
            .map_err(|_| Error::invalid("`content_base64`: expected base64"))?,
        _ => return Err(Error::invalid("one of `content` and `content_base64` is needed")),
    };
    app.service.write_file(&session_id, &path, content::incoming(Body::from(data))).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    path: Option<String>,
}

/// What a directory of a session holds; its home directory, if no path is given.
#[utoipa::path(
    get, path = "/api/e2b/files/{id}", tag = "e2b",
    params(("id" = SessionId, Path), ("path" = Option<String>, Query)),
    responses((status = 200, body = Listing))
)]
pub(crate) async fn list(
    State(app): State<App>,
    Session(id): Session,
    Query(place): Query<Place>,
) -> Result<Answer<Listing>> {
    let path = place.path.as_deref().unwrap_or(".");
    Ok(Answer(app.service.list_files(&id, path).await?))
}
