//! `…/files/archive`: directories of a session's sandbox, as tar archives.

use atoll_types::{
    id::SessionId,
    key::Scope::{Read, Run},
};
use axum::{body::Body, extract::State, http::StatusCode, response::Response};

use crate::{
    access::{Access::Key, Routes},
    app::App,
    content,
    error::Result,
    extract::{FilePath, Query, Session},
};

pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/sessions/{id}/files/archive", Key(Read), pack).put(
        "/api/sessions/{id}/files/archive",
        Key(Run),
        unpack,
    )
}

/// Download a directory, or one file, as a tar archive.
///
/// Names are relative to the directory. What cannot be in it (pipes, sockets, devices, what may
/// not be read) is told in a comment at its end. One that breaks off has no end: neither the
/// archive's, nor the answer's.
#[utoipa::path(
    get, path = "/api/sessions/{id}/files/archive", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Query)),
    responses((status = 200, body = Vec<u8>, content_type = "application/x-tar"))
)]
pub(crate) async fn pack(
    State(app): State<App>,
    Session(id): Session,
    Query(file): Query<FilePath>,
) -> Result<Response> {
    let archive = app.service.pack_files(&id, &file.path).await?;
    Ok(content::typed("application/x-tar", archive))
}

/// Upload a plain tar archive and unpack it into a directory, which is made if it is not there.
///
/// Nothing is written outside the directory or through a link. Entries that were whole stay when
/// it fails; the error names the one at which it did.
#[utoipa::path(
    put, path = "/api/sessions/{id}/files/archive", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Query)),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses((status = 204))
)]
pub(crate) async fn unpack(
    State(app): State<App>,
    Session(id): Session,
    Query(file): Query<FilePath>,
    body: Body,
) -> Result<StatusCode> {
    app.service.unpack_files(&id, &file.path, content::incoming(body)).await?;
    Ok(StatusCode::NO_CONTENT)
}
