//! `/api/environments`.

use std::convert::Infallible;

use atoll_service::Prepared;
use atoll_types::{
    environment::{EnvironmentList, PrepareEvent},
    error::ErrorBody,
    key::Scope::{Admin, Read},
};
use axum::{
    Json as Answer,
    extract::State,
    response::{
        IntoResponse,
        sse::{self, KeepAlive, Sse},
    },
};
use futures_util::StreamExt as _;
use serde::Deserialize;

use crate::{
    access::{Access::Key, Routes},
    app::App,
    error::{Error, Result},
    extract::{Name, Query},
};

/// What is prepared, besides the environment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct For {
    engine: Option<String>,
}

pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/environments", Key(Read), list).post(
        "/api/environments/{name}/prepare",
        Key(Admin),
        prepare,
    )
}

/// What sandboxes of this server can be made of.
#[utoipa::path(
    get, path = "/api/environments", operation_id = "environments", tag = "server",
    responses((status = 200, body = EnvironmentList))
)]
pub(crate) async fn list(State(app): State<App>) -> Result<Answer<EnvironmentList>> {
    Ok(Answer(EnvironmentList { environments: app.service.environments().await? }))
}

/// Gets what sandboxes of an environment need and the server lacks, such as an image, and tells how
/// far it is. A client that goes away gives it up.
#[utoipa::path(
    post, path = "/api/environments/{name}/prepare", operation_id = "prepare_environment",
    tag = "server",
    params(("name" = String, Path), ("engine" = Option<String>, Query)),
    responses((status = 200, body = PrepareEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn prepare(
    State(app): State<App>,
    Name(name): Name,
    Query(wanted): Query<For>,
) -> Result<impl IntoResponse> {
    let preparation = app.service.prepare(&name, wanted.engine.as_deref()).await?;
    let events = preparation
        .map(|event| Ok::<_, Infallible>(shown(event)))
        .take_until(app.settings.closing.clone().cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

fn shown(event: atoll_service::Result<Prepared>) -> sse::Event {
    let (kind, data) = match event {
        Ok(Prepared::Step(step)) => {
            let atoll_service::Progress { part, doing, done, total } = step;
            ("step", serde_json::to_string(&PrepareEvent::Step { part, doing, done, total }))
        }
        Ok(Prepared::Done) => ("ready", serde_json::to_string(&PrepareEvent::Ready)),
        Err(error) => {
            let problem = Error::from(error).problem();
            ("error", serde_json::to_string(&ErrorBody { error: problem }))
        }
    };
    sse::Event::default().event(kind).data(data.expect("plain data is JSON"))
}
