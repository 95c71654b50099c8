//! `…/execute` and `/api/execute`: run something and wait for its end.
//!
//! **Decision:** an execution belongs to the request that asked for it. A client that hangs up
//! drops the handler, which ends the program and all it started; there would be nobody to tell.

use atoll_types::{
    execution::{ExecuteRequest, ExecutionResult, OneShotRequest},
    id::SessionId,
    key::Scope::Run,
};
use axum::{Json as Answer, extract::State};

use crate::{
    access::{Access::Key, Caller, Routes},
    app::App,
    error::Result,
    extract::Session,
    json::Json,
};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/sessions/{id}/execute", Key(Run), execute)
        .post("/api/execute/sync", Key(Run), execute_once)
        .post("/execute/sync", Key(Run), execute_once_short)
}

/// Run something in a session, to its end.
///
/// Whatever the program does, the status is 200: its end is in the body.
#[utoipa::path(
    post, path = "/api/sessions/{id}/execute", tag = "executions", request_body = ExecuteRequest,
    params(("id" = SessionId, Path)), responses((status = 200, body = ExecutionResult))
)]
pub(crate) async fn execute(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<ExecuteRequest>,
) -> Result<Answer<ExecutionResult>> {
    Ok(Answer(app.service.execute(&id, request).await?))
}

/// Run something in a fresh sandbox, which is gone when the answer comes.
#[utoipa::path(
    post, path = "/api/execute/sync", tag = "executions", request_body = OneShotRequest,
    responses((status = 200, body = ExecutionResult))
)]
pub(crate) async fn execute_once(
    caller: Caller,
    State(app): State<App>,
    Json(request): Json<OneShotRequest>,
) -> Result<Answer<ExecutionResult>> {
    Ok(Answer(app.service_for(&caller).execute_once(request).await?))
}

/// The same as `POST /api/execute/sync`.
#[utoipa::path(
    post, path = "/execute/sync", tag = "executions", request_body = OneShotRequest,
    responses((status = 200, body = ExecutionResult))
)]
pub(crate) async fn execute_once_short(
    caller: Caller,
    app: State<App>,
    request: Json<OneShotRequest>,
) -> Result<Answer<ExecutionResult>> {
    execute_once(caller, app, request).await
}
