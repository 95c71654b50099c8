//! `/api/keys`.

use atoll_types::key::{CreateKey, KeyList, NewKey, Scope::Admin};
use axum::{Json as Answer, extract::State, http::StatusCode, response::IntoResponse};

use crate::{
    access::{Access, Routes},
    app::App,
    error::Result,
    extract::Key,
    json::Json,
};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/keys", Access::Key(Admin), create)
        .get("/api/keys", Access::Key(Admin), list)
        .delete("/api/keys/{key}", Access::Key(Admin), remove)
}

/// Make a key. Its secret is shown this once.
#[utoipa::path(
    post, path = "/api/keys", tag = "keys", request_body = CreateKey,
    responses((status = 201, body = NewKey))
)]
pub(crate) async fn create(
    State(app): State<App>,
    Json(request): Json<CreateKey>,
) -> Result<impl IntoResponse> {
    let key = app.service.create_key(request).await?;
    Ok((StatusCode::CREATED, [("cache-control", "no-store")], Answer(key)))
}

/// The keys there are, without their secrets.
#[utoipa::path(get, path = "/api/keys", tag = "keys", responses((status = 200, body = KeyList)))]
pub(crate) async fn list(State(app): State<App>) -> Result<Answer<KeyList>> {
    Ok(Answer(KeyList { keys: app.service.keys().await? }))
}

/// Remove a key: from now on it opens nothing.
#[utoipa::path(
    delete, path = "/api/keys/{key}", tag = "keys",
    params(("key" = String, Path, description = "its id, not its secret")),
    responses((status = 204))
)]
pub(crate) async fn remove(State(app): State<App>, Key(key): Key) -> Result<StatusCode> {
    app.service.remove_key(&key).await?;
    Ok(StatusCode::NO_CONTENT)
}
