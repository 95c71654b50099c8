//! What every request leaves behind: an id, a span, a line for the log, a count; and what happens
//! should its handler panic.

use std::{any::Any, panic::AssertUnwindSafe, time::Instant};

use axum::{
    extract::{MatchedPath, Request},
    http::{HeaderMap, HeaderValue, Method, StatusCode},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use futures_util::FutureExt as _;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::error::Error;

const REQUEST_ID: &str = "x-request-id";

/// The outermost layer.
pub(crate) async fn observe(request: Request, next: Next) -> Response {
    let (id, value) = request_id(request.headers());
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let started = Instant::now();
    let span = tracing::info_span!("request", request = %id, %method, route);

    let run = AssertUnwindSafe(next.run(request)).catch_unwind();
    let mut response = run.instrument(span.clone()).await.unwrap_or_else(|panic| {
        span.in_scope(|| tracing::error!(panic = said(&*panic), "a handler panicked"));
        Error::internal().into_response()
    });

    let (status, took) = (response.status(), started.elapsed());
    span.in_scope(|| tracing::debug!(status = status.as_u16(), ?took, "answered"));
    count(&method, route, status, took.as_secs_f64());
    response.headers_mut().insert(REQUEST_ID, value);
    response
}

fn count(method: &Method, route: String, status: StatusCode, seconds: f64) {
    // Methods and paths are the client's words: only those we know become labels.
    let method = match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        _ => "other",
    };
    let labels =
        [("method", method.to_owned()), ("route", route), ("status", status.as_u16().to_string())];
    metrics::counter!("atoll_http_requests_total", &labels).increment(1);
    metrics::histogram!("atoll_http_request_seconds", &labels[..2]).record(seconds);
}

/// The client's own id, if it is a plain word; else a new one.
fn request_id(headers: &HeaderMap) -> (String, HeaderValue) {
    let plain = |text: &&str| {
        matches!(text.len(), 1..=64)
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(plain);
    let id = given.map_or_else(|| Uuid::new_v4().simple().to_string(), str::to_owned);
    let value = HeaderValue::try_from(&id).expect("letters, digits and dashes are a header");
    (id, value)
}

fn said(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("something that is no text")
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware, routing::get};
    use tower::ServiceExt as _;

    use super::*;

    fn given(id: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, id.parse().unwrap());
        request_id(&headers).0
    }

    #[test]
    fn a_plain_id_is_kept_and_any_other_replaced() {
        assert_eq!(given("trace-7_B"), "trace-7_B");
        for bad in ["", "a b", "a\"b", &"x".repeat(65)] {
            assert_eq!(given(bad).len(), 32, "{bad}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_error_and_not_the_end() {
        async fn broken() {
            panic!("secret detail");
        }
        let router = Router::new().route("/", get(broken)).layer(middleware::from_fn(observe));

        let request = Request::builder().uri("/").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();

        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.headers().contains_key(REQUEST_ID));
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        insta::assert_snapshot!(String::from_utf8_lossy(&body), @r#"{"error":{"code":"internal","message":"the server failed at this","hint":"its log has the cause, under this answer's X-Request-Id"}}"#);
    }
}
