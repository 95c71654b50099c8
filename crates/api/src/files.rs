//! `…/files`: the files of a session's sandbox.

use atoll_types::{
    file::{ChangeMode, Entry, Exists, Listing, MakeDirectory, Move},
    id::SessionId,
    key::Scope::{Read, Run},
    session::State as Stage,
};
use axum::{Json as Answer, body::Body, extract::State, http::StatusCode, response::Response};

use crate::{
    access::{Access::Key, Routes},
    app::App,
    content,
    error::{Error, Result},
    extract::{FilePath, Query, Session},
    json::Json,
};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/sessions/{id}/files", Key(Read), read)
        .put("/api/sessions/{id}/files", Key(Run), write)
        .delete("/api/sessions/{id}/files", Key(Run), remove)
        .get("/api/sessions/{id}/files/list", Key(Read), list)
        .get("/api/sessions/{id}/files/stat", Key(Read), stat)
        .get("/api/sessions/{id}/files/exists", Key(Read), exists)
        .post("/api/sessions/{id}/files/mkdir", Key(Run), make_directory)
        .post("/api/sessions/{id}/files/move", Key(Run), rename)
        .post("/api/sessions/{id}/files/copy", Key(Run), copy)
        .post("/api/sessions/{id}/files/chmod", Key(Run), change_mode)
}

/// Download a file of any size.
#[utoipa::path(
    get, path = "/api/sessions/{id}/files", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Query)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"))
)]
pub(crate) async fn read(
    State(app): State<App>,
    Session(id): Session,
    Query(file): Query<FilePath>,
) -> Result<Response> {
    Ok(content::outgoing(app.service.read_file(&id, &file.path).await?))
}

/// Upload a file of any size: the body is its content. It is replaced whole, or not at all.
#[utoipa::path(
    put, path = "/api/sessions/{id}/files", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Query)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 204))
)]
pub(crate) async fn write(
    State(app): State<App>,
    Session(id): Session,
    Query(file): Query<FilePath>,
    body: Body,
) -> Result<StatusCode> {
    app.service.write_file(&id, &file.path, content::incoming(body)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove a file, a link itself, or a directory with all it holds.
#[utoipa::path(
    delete, path = "/api/sessions/{id}/files", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Query)), responses((status = 204))
)]
pub(crate) async fn remove(
    State(app): State<App>,
    Session(id): Session,
    Query(file): Query<FilePath>,
) -> Result<StatusCode> {
    app.service.remove_file(&id, &file.path).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a directory holds.
#[utoipa::path(
    get, path = "/api/sessions/{id}/files/list", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Query)),
    responses((status = 200, body = Listing))
)]
pub(crate) async fn list(
    State(app): State<App>,
    Session(id): Session,
    Query(file): Query<FilePath>,
) -> Result<Answer<Listing>> {
    Ok(Answer(app.service.list_files(&id, &file.path).await?))
}

/// What a path names; a link is told as a link.
#[utoipa::path(
    get, path = "/api/sessions/{id}/files/stat", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Query)),
    responses((status = 200, body = Entry))
)]
pub(crate) async fn stat(
    State(app): State<App>,
    Session(id): Session,
    Query(file): Query<FilePath>,
) -> Result<Answer<Entry>> {
    Ok(Answer(app.service.stat_file(&id, &file.path).await?))
}

/// Whether a path names anything.
#[utoipa::path(
    get, path = "/api/sessions/{id}/files/exists", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Query)),
    responses((status = 200, body = Exists))
)]
pub(crate) async fn exists(
    State(app): State<App>,
    Session(id): Session,
    Query(file): Query<FilePath>,
) -> Result<Answer<Exists>> {
    match app.service.stat_file(&id, &file.path).await.map_err(Error::from) {
        Ok(_) => Ok(Answer(Exists { exists: true })),
        // Of a session that is there; one that is not has no files, and says so.
        Err(error) if error.is_not_found() => match app.service.session(&id).await?.state {
            Stage::Ready | Stage::Busy => Ok(Answer(Exists { exists: false })),
            _ => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Make a directory and those it needs; one that is there is fine.
#[utoipa::path(
    post, path = "/api/sessions/{id}/files/mkdir", tag = "files", request_body = MakeDirectory,
    params(("id" = SessionId, Path)), responses((status = 204))
)]
pub(crate) async fn make_directory(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<MakeDirectory>,
) -> Result<StatusCode> {
    app.service.make_directory(&id, &request.path).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Move a file or directory, replacing a file that is there.
#[utoipa::path(
    post, path = "/api/sessions/{id}/files/move", tag = "files", request_body = Move,
    params(("id" = SessionId, Path)), responses((status = 204))
)]
pub(crate) async fn rename(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<Move>,
) -> Result<StatusCode> {
    app.service.move_file(&id, &request.from, &request.to).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Copy a regular file.
#[utoipa::path(
    post, path = "/api/sessions/{id}/files/copy", tag = "files", request_body = Move,
    params(("id" = SessionId, Path)), responses((status = 204))
)]
pub(crate) async fn copy(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<Move>,
) -> Result<StatusCode> {
    app.service.copy_file(&id, &request.from, &request.to).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Set permission bits; the number is decimal, as JSON has it: 0755 is 493.
#[utoipa::path(
    post, path = "/api/sessions/{id}/files/chmod", tag = "files", request_body = ChangeMode,
    params(("id" = SessionId, Path)), responses((status = 204))
)]
pub(crate) async fn change_mode(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<ChangeMode>,
) -> Result<StatusCode> {
    app.service.set_file_mode(&id, &request.path, request.mode).await?;
    Ok(StatusCode::NO_CONTENT)
}
