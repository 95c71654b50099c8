//! `/api/environments`.

use atoll_types::{environment::EnvironmentList, key::Scope::Read};
use axum::{Json as Answer, extract::State};

use crate::{
    access::{Access::Key, Routes},
    app::App,
    error::Result,
};

pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/environments", Key(Read), list)
}

/// What sandboxes of this server can be made of.
#[utoipa::path(
    get, path = "/api/environments", operation_id = "environments", tag = "server",
    responses((status = 200, body = EnvironmentList))
)]
pub(crate) async fn list(State(app): State<App>) -> Result<Answer<EnvironmentList>> {
    Ok(Answer(EnvironmentList { environments: app.service.environments().await? }))
}
