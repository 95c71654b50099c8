//! `…/files/glob`, `grep`, `edit` and `watch`: finding, changing and following files.

use std::convert::Infallible;

use atoll_types::{
    error::ErrorBody,
    file::Listing,
    id::SessionId,
    key::Scope::{Read, Run},
    search::{EditFile, Edited, Glob, Grep, Matches},
    watch::Change,
};
use axum::{
    Json as Answer,
    extract::State,
    http::HeaderMap,
    response::{
        IntoResponse,
        sse::{self, KeepAlive, Sse},
    },
};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;

use crate::{
    access::{Access::Key, Routes},
    app::App,
    error::{Error, Result},
    events::ALIVE,
    extract::{Query, Session},
    json::{Json, Payload},
};

impl Payload for Glob {}
impl Payload for Grep {}
impl Payload for EditFile {
    const MOST: usize = 8 << 20;
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/sessions/{id}/files/glob", Key(Read), glob)
        .post("/api/sessions/{id}/files/grep", Key(Read), grep)
        .post("/api/sessions/{id}/files/edit", Key(Run), edit)
        .get("/api/sessions/{id}/files/watch", Key(Read), watch)
}

/// Find files, directories and links by name.
#[utoipa::path(
    post, path = "/api/sessions/{id}/files/glob", tag = "files", request_body = Glob,
    params(("id" = SessionId, Path)), responses((status = 200, body = Listing))
)]
pub(crate) async fn glob(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<Glob>,
) -> Result<Answer<Listing>> {
    Ok(Answer(app.service.glob_files(&id, &request).await?))
}

/// Find lines in regular files.
#[utoipa::path(
    post, path = "/api/sessions/{id}/files/grep", tag = "files", request_body = Grep,
    params(("id" = SessionId, Path)), responses((status = 200, body = Matches))
)]
pub(crate) async fn grep(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<Grep>,
) -> Result<Answer<Matches>> {
    Ok(Answer(app.service.grep_files(&id, &request).await?))
}

/// Replace text in a file: all that is asked for, or nothing.
#[utoipa::path(
    post, path = "/api/sessions/{id}/files/edit", tag = "files", request_body = EditFile,
    params(("id" = SessionId, Path)), responses((status = 200, body = Edited))
)]
pub(crate) async fn edit(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<EditFile>,
) -> Result<Answer<Edited>> {
    Ok(Answer(app.service.edit_file(&id, &request).await?))
}

/// What to watch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watched {
    path: String,
    #[serde(default)]
    recursive: bool,
}

/// Follow what happens in a directory, as server-sent events; nothing is missed once the answer
/// has begun.
///
/// Each event's id is its number. A client that comes back with `Last-Event-ID` is told first that
/// events were lost, since nobody kept them.
#[utoipa::path(
    get, path = "/api/sessions/{id}/files/watch", tag = "files",
    params(
        ("id" = SessionId, Path), ("path" = String, Query), ("recursive" = Option<bool>, Query),
        ("last-event-id" = Option<String>, Header),
    ),
    responses((status = 200, body = Change, content_type = "text/event-stream"))
)]
pub(crate) async fn watch(
    State(app): State<App>,
    Session(id): Session,
    Query(watched): Query<Watched>,
    headers: HeaderMap,
) -> Result<impl IntoResponse> {
    let changes = app.service.watch_files(&id, &watched.path, watched.recursive).await?;
    let missed = headers.contains_key("last-event-id").then_some(Ok(Change::Overflow));
    let mut number = 0_u64;
    let events =
        stream::iter(missed)
            .chain(changes.map(|change| {
                change.map_err(|error| Error::from(atoll_service::Error::from(error)))
            }))
            .map(move |change| {
                number += 1;
                Ok::<_, Infallible>(shown(change, number))
            })
            .take_until(app.settings.closing.clone().cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)))
}

fn shown(change: Result<Change>, number: u64) -> sse::Event {
    let (kind, data) = match change {
        Ok(change) => ("change", serde_json::to_string(&change)),
        Err(error) => ("error", serde_json::to_string(&ErrorBody { error: error.problem() })),
    };
    let data = data.expect("plain data is JSON");
    sse::Event::default().event(kind).id(number.to_string()).data(data)
}
