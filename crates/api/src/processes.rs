//! `…/processes`: what runs while the client does something else.

use atoll_types::{
    id::{ProcessId, SessionId},
    key::Scope::{Read, Run},
    process::{
        Process as Shown, ProcessEvent, ProcessList, SignalProcess, StartProcess, TerminalSize,
    },
};
use axum::{
    Json as Answer,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
};

use crate::{
    access::{Access::Key, Routes},
    app::App,
    content,
    error::Result,
    events::{self, Start},
    extract::{Process, Query, Session},
    json::Json,
};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/sessions/{id}/processes", Key(Run), start)
        .get("/api/sessions/{id}/processes", Key(Read), list)
        .get("/api/sessions/{id}/processes/{process}", Key(Read), show)
        .delete("/api/sessions/{id}/processes/{process}", Key(Run), kill)
        .get("/api/sessions/{id}/processes/{process}/attach", Key(Read), attach)
        .post("/api/sessions/{id}/processes/{process}/stdin", Key(Run), write_stdin)
        .delete("/api/sessions/{id}/processes/{process}/stdin", Key(Run), close_stdin)
        .post("/api/sessions/{id}/processes/{process}/signal", Key(Run), signal)
        .post("/api/sessions/{id}/processes/{process}/resize", Key(Run), resize)
}

/// Start a process and leave it to run.
#[utoipa::path(
    post, path = "/api/sessions/{id}/processes", tag = "processes", request_body = StartProcess,
    params(("id" = SessionId, Path)), responses((status = 201, body = Shown))
)]
pub(crate) async fn start(
    State(app): State<App>,
    Session(id): Session,
    Json(request): Json<StartProcess>,
) -> Result<impl IntoResponse> {
    let process = app.service.start_process(&id, request).await?;
    Ok((StatusCode::CREATED, Answer(process)))
}

/// The processes of a session, oldest first.
#[utoipa::path(
    get, path = "/api/sessions/{id}/processes", tag = "processes",
    params(("id" = SessionId, Path)), responses((status = 200, body = ProcessList))
)]
pub(crate) async fn list(
    State(app): State<App>,
    Session(id): Session,
) -> Result<Answer<ProcessList>> {
    Ok(Answer(ProcessList { processes: app.service.processes(&id).await? }))
}

/// Look at a process.
#[utoipa::path(
    get, path = "/api/sessions/{id}/processes/{process}", tag = "processes",
    params(("id" = SessionId, Path), ("process" = ProcessId, Path)),
    responses((status = 200, body = Shown))
)]
pub(crate) async fn show(
    State(app): State<App>,
    Session(id): Session,
    Process(process): Process,
) -> Result<Answer<Shown>> {
    Ok(Answer(app.service.process(&id, process).await?))
}

/// End a process and every descendant.
#[utoipa::path(
    delete, path = "/api/sessions/{id}/processes/{process}", tag = "processes",
    params(("id" = SessionId, Path), ("process" = ProcessId, Path)), responses((status = 204))
)]
pub(crate) async fn kill(
    State(app): State<App>,
    Session(id): Session,
    Process(process): Process,
) -> Result<StatusCode> {
    app.service.kill_process(&id, process).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow a process: its output from these bytes on as server-sent events, then its end.
///
/// Each event's id is `stdout:stderr`, where to begin next time; `Last-Event-ID` takes it.
#[utoipa::path(
    get, path = "/api/sessions/{id}/processes/{process}/attach", tag = "processes",
    params(
        ("id" = SessionId, Path), ("process" = ProcessId, Path),
        ("stdout" = Option<u64>, Query), ("stderr" = Option<u64>, Query),
        ("last-event-id" = Option<String>, Header),
    ),
    responses((status = 200, body = ProcessEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn attach(
    State(app): State<App>,
    Session(id): Session,
    Process(process): Process,
    Query(start): Query<Start>,
    headers: HeaderMap,
) -> Result<impl IntoResponse> {
    let from = start.offsets(&headers)?;
    let events = app.service.attach_process(&id, process, from).await?;
    Ok(events::answer(events, from, app.settings.closing.clone()))
}

/// Write the body to a process's standard input; waits while it does not read.
#[utoipa::path(
    post, path = "/api/sessions/{id}/processes/{process}/stdin", tag = "processes",
    params(("id" = SessionId, Path), ("process" = ProcessId, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 204))
)]
pub(crate) async fn write_stdin(
    State(app): State<App>,
    Session(id): Session,
    Process(process): Process,
    body: Body,
) -> Result<StatusCode> {
    // Looked up even when there is nothing to write.
    app.service.process(&id, process).await?;
    let mut body = body.into_data_stream();
    while let Some(data) = content::next(&mut body).await? {
        app.service.write_stdin(&id, process, data).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// End a process's standard input.
#[utoipa::path(
    delete, path = "/api/sessions/{id}/processes/{process}/stdin", tag = "processes",
    params(("id" = SessionId, Path), ("process" = ProcessId, Path)), responses((status = 204))
)]
pub(crate) async fn close_stdin(
    State(app): State<App>,
    Session(id): Session,
    Process(process): Process,
) -> Result<StatusCode> {
    app.service.close_stdin(&id, process).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Send a signal to a process, not to its descendants.
#[utoipa::path(
    post, path = "/api/sessions/{id}/processes/{process}/signal", tag = "processes",
    params(("id" = SessionId, Path), ("process" = ProcessId, Path)),
    request_body = SignalProcess, responses((status = 204))
)]
pub(crate) async fn signal(
    State(app): State<App>,
    Session(id): Session,
    Process(process): Process,
    Json(request): Json<SignalProcess>,
) -> Result<StatusCode> {
    app.service.signal_process(&id, process, request.signal).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Set the size of a process's terminal.
#[utoipa::path(
    post, path = "/api/sessions/{id}/processes/{process}/resize", tag = "processes",
    params(("id" = SessionId, Path), ("process" = ProcessId, Path)),
    request_body = TerminalSize, responses((status = 204))
)]
pub(crate) async fn resize(
    State(app): State<App>,
    Session(id): Session,
    Process(process): Process,
    Json(size): Json<TerminalSize>,
) -> Result<StatusCode> {
    app.service.resize_process(&id, process, size).await?;
    Ok(StatusCode::NO_CONTENT)
}
