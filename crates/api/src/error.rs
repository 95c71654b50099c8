//! One error body for everything that says no.

use atoll_service::Code;
use atoll_types::{
    error::{ErrorBody, Problem},
    key::Scope,
};
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::WWW_AUTHENTICATE},
    response::{IntoResponse, Response},
};

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// An answer that says no.
#[derive(Debug)]
pub(crate) struct Error {
    status: StatusCode,
    problem: Problem,
}

impl Error {
    fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let problem = Problem { code: code.to_owned(), message: message.into(), hint: None };
        Self { status, problem }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.problem.hint = Some(hint.into());
        self
    }

    pub(crate) fn problem(self) -> Problem {
        self.problem
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this path has no such method",
        )
        .hint("the Allow header names those it has")
    }

    pub(crate) fn too_large(most: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("the body may have at most {most} bytes"),
        )
        .hint("upload large content with PUT /api/sessions/{id}/files?path=")
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "timed_out", "the body did not come in time")
    }

    pub(crate) fn cut_short() -> Self {
        Self::invalid("the body ended before it was whole")
    }

    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "denied", message)
    }

    pub(crate) fn no_key() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "a key is needed").hint(
            "make one with `atoll key create NAME` and send it as \
             `Authorization: Bearer KEY` or `X-API-Key: KEY`",
        )
    }

    pub(crate) fn wrong_key() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "this key is not valid")
            .hint("it may have been removed; `atoll key ls` lists those that are")
    }

    pub(crate) fn missing_scope(scope: Scope) -> Self {
        let scope = match scope {
            Scope::Read => "read",
            Scope::Run => "run",
            Scope::Admin => "admin",
        };
        Self::denied(format!("this key does not have the scope `{scope}`"))
    }

    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server failed at this")
            .hint("its log has the cause, under this answer's X-Request-Id")
    }

    /// A program in a sandbox answered, and not as it should.
    pub(crate) fn bad_gateway(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "bad_gateway", message)
    }

    /// A program in a sandbox did not answer.
    pub(crate) fn no_answer(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timed_out", message)
    }

    pub(crate) fn upgrade_required(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }
}

/// The status of each of the service's codes, and the only place that knows it.
fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidRequest => StatusCode::BAD_REQUEST,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Conflict => StatusCode::CONFLICT,
        Code::Denied | Code::EngineNotIsolating => StatusCode::FORBIDDEN,
        Code::Unsupported
        | Code::InterpreterMissing
        | Code::ProgramMissing
        | Code::ImageMissing => StatusCode::UNPROCESSABLE_ENTITY,
        Code::EngineUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::TooManySessions => StatusCode::TOO_MANY_REQUESTS,
        Code::Exhausted => StatusCode::INSUFFICIENT_STORAGE,
        Code::SessionLost => StatusCode::GONE,
        Code::PortClosed => StatusCode::BAD_GATEWAY,
        Code::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<atoll_service::Error> for Error {
    fn from(error: atoll_service::Error) -> Self {
        match error.code {
            Code::Internal => tracing::error!(cause = chain(&error), "a request failed"),
            code => tracing::debug!(?code, cause = chain(&error), "a request was refused"),
        }
        let problem = Problem {
            code: error.code.as_str().to_owned(),
            message: error.message,
            hint: error.hint,
        };
        Self { status: status(error.code), problem }
    }
}

/// An error and its causes, for the log: clients never see these.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let body = Json(ErrorBody { error: self.problem });
        let mut response = (self.status, body).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
