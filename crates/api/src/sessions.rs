//! `/api/sessions`.

use std::collections::BTreeMap;

use atoll_service::{SessionFilter, Wanted};
use atoll_types::{
    id::{SandboxId, SessionId},
    key::Scope::{Read, Run},
    session::{CreateSession, Metrics, Session as Shown, SessionPage, SetTimeout, State as Stage},
};
use axum::{
    Json as Answer,
    extract::State,
    http::{StatusCode, Uri, header::LOCATION},
    response::IntoResponse,
};
use serde::Deserialize;

use crate::{
    access::{Access::Key, Caller, Routes},
    app::App,
    error::{Error, Result},
    extract::{Query, Session, pairs},
    json::Json,
};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/sessions", Key(Run), create)
        .get("/api/sessions", Key(Read), list)
        .get("/api/sessions/{id}", Key(Read), show)
        .delete("/api/sessions/{id}", Key(Run), remove)
        .post("/api/sessions/{id}/timeout", Key(Run), set_timeout)
        .get("/api/sessions/{id}/metrics", Key(Read), metrics)
}

/// Make a session. It is ready when the answer comes.
#[utoipa::path(
    post, path = "/api/sessions", tag = "sessions", request_body = CreateSession,
    responses((status = 201, body = Shown))
)]
pub(crate) async fn create(
    caller: Caller,
    State(app): State<App>,
    Json(request): Json<CreateSession>,
) -> Result<impl IntoResponse> {
    let session = app.service_for(&caller).create_session(request).await?;
    let place = [(LOCATION, session.url.clone())];
    Ok((StatusCode::CREATED, place, Answer(session)))
}

/// List sessions, newest first; those that ended only if `state` asks for them. `metadata.NAME=VALUE` filters by metadata, any number of times.
#[utoipa::path(
    get, path = "/api/sessions", tag = "sessions",
    params(
        ("state" = Option<String>, Query, description =
            "`creating`, `ready`, `busy`, `destroying`, `gone`, `failed`, `lost` or `all`; \
             without it, those that have not ended"),
        ("environment" = Option<String>, Query),
        ("engine" = Option<String>, Query), ("limit" = Option<u32>, Query),
        ("after" = Option<String>, Query, description = "the `next` of the page before"),
    ),
    responses((status = 200, body = SessionPage))
)]
pub(crate) async fn list(State(app): State<App>, uri: Uri) -> Result<Answer<SessionPage>> {
    let filter = filter(uri.query().unwrap_or_default())?;
    Ok(Answer(app.service.sessions(filter).await?))
}

/// Look at a session.
#[utoipa::path(
    get, path = "/api/sessions/{id}", tag = "sessions",
    params(("id" = SessionId, Path)), responses((status = 200, body = Shown))
)]
pub(crate) async fn show(State(app): State<App>, Session(id): Session) -> Result<Answer<Shown>> {
    Ok(Answer(app.service.session(&id).await?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Removal {
    sandbox_id: Option<SandboxId>,
}

/// End a session. A second time it is not found; another `sandbox_id` than its own is a conflict.
#[utoipa::path(
    delete, path = "/api/sessions/{id}", tag = "sessions",
    params(("id" = SessionId, Path), ("sandbox_id" = Option<SandboxId>, Query)),
    responses((status = 204))
)]
pub(crate) async fn remove(
    State(app): State<App>,
    Session(id): Session,
    Query(removal): Query<Removal>,
) -> Result<StatusCode> {
    app.service.delete_session(&id, removal.sandbox_id.as_ref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Let a session live this long from now.
#[utoipa::path(
    post, path = "/api/sessions/{id}/timeout", tag = "sessions", request_body = SetTimeout,
    params(("id" = SessionId, Path)), responses((status = 200, body = Shown))
)]
pub(crate) async fn set_timeout(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<SetTimeout>,
) -> Result<Answer<Shown>> {
    Ok(Answer(app.service.set_timeout(&id, request.timeout).await?))
}

/// What a session's sandbox uses now.
#[utoipa::path(
    get, path = "/api/sessions/{id}/metrics", tag = "sessions",
    params(("id" = SessionId, Path)), responses((status = 200, body = Metrics))
)]
pub(crate) async fn metrics(
    State(app): State<App>,
    Session(id): Session,
) -> Result<Answer<Metrics>> {
    Ok(Answer(app.service.metrics(&id).await?))
}

/// Understands `?state=&environment=&engine=&limit=&after=&metadata.NAME=`.
fn filter(query: &str) -> Result<SessionFilter> {
    let mut filter = SessionFilter::default();
    let mut metadata = BTreeMap::new();
    for (name, value) in pairs(query) {
        match name.as_str() {
            "state" => filter.state = state(&value)?,
            "environment" => filter.environment = Some(value),
            "engine" | "provider" => filter.engine = Some(value),
            "limit" => {
                let limit = value.parse().ok().filter(|limit| *limit > 0);
                filter.limit = Some(limit.ok_or_else(|| {
                    Error::invalid("the query's `limit`: expected a whole number above zero")
                })?);
            }
            "after" => filter.after = Some(value),
            other => match other.strip_prefix("metadata.") {
                Some(name) => drop(metadata.insert(name.to_owned(), value)),
                None => return Err(Error::invalid(format!("the query's `{other}` is unknown"))),
            },
        }
    }
    filter.metadata = metadata;
    Ok(filter)
}

fn state(word: &str) -> Result<Wanted> {
    if word == "all" {
        return Ok(Wanted::All);
    }
    serde_json::from_value::<Stage>(word.into()).map(Wanted::In).map_err(|error| {
        Error::invalid(format!(
            "the query's `state`: {}",
            crate::wording::plain(&error.to_string())
        ))
    })
}
