//! `/api/engines`.

use atoll_types::{engine::EngineList, key::Scope::Read};
use axum::{Json as Answer, extract::State};

use crate::{
    access::{Access::Key, Routes},
    app::App,
    error::Result,
};

pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/engines", Key(Read), list)
}

/// The engines of this server, usable or not, and how well each limit holds.
#[utoipa::path(
    get, path = "/api/engines", operation_id = "engines", tag = "server", responses((status = 200, body = EngineList))
)]
pub(crate) async fn list(State(app): State<App>) -> Result<Answer<EngineList>> {
    Ok(Answer(EngineList { engines: app.service.engines().await? }))
}
