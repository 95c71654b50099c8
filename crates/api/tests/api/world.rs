//! A server of one test: its own engine directory, its own records, nothing left behind.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
    time::Duration,
};

use atoll_api::{Peer, Settings, install_metrics, router};
use atoll_local::{Config, LocalEngine};
use atoll_service::{Engines, Service, Store};
use atoll_types::key::{CreateKey, Scope};
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request},
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Long enough for a machine that does seven other things.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) router: Router,
    pub(crate) closing: CancellationToken,
    /// Sandboxes, and whatever a test puts there.
    pub(crate) place: TempDir,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl World {
    /// Runs a test in a world of its own, and ends that world also if the test fails.
    pub(crate) async fn run(test: impl AsyncFnOnce(&Self)) {
        // What went wrong inside is shown with a test that fails.
        let _ = tracing_subscriber::fmt()
            .with_test_writer()
            .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
            .try_init();
        let world = Self::new().await;
        let outcome = AssertUnwindSafe(test(&world)).catch_unwind().await;
        world.closing.cancel();
        world.service.shutdown().await;
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    }

    async fn new() -> Self {
        let place = TempDir::new().unwrap();
        let engine = LocalEngine::new(Config::new(place.path().join("sandboxes")));
        let settings = atoll_service::Settings {
            default_engine: "local".to_owned(),
            allow_trusted: true,
            end_sessions_on_shutdown: true,
            ..Default::default()
        };
        let engines = Engines::new().with(Arc::new(engine));
        let store = Store::in_memory().await.unwrap();
        let service = Service::open(store, engines, settings).await.unwrap();
        let closing = CancellationToken::new();
        let settings = Settings {
            hosts: vec!["atoll.example".to_owned()],
            metrics: Some(metrics()),
            version: "1.2.3".to_owned(),
            closing: closing.clone(),
            ..Settings::default()
        };
        Self { router: router(service.clone(), settings), service, closing, place }
    }

    /// Asks as the operator does, over the private socket.
    pub(crate) async fn ask(&self, method: Method, target: &str, body: impl Into<Body>) -> Reply {
        let mut request = Request::builder().method(method).uri(target).body(body.into()).unwrap();
        request.extensions_mut().insert(Peer::Operator { uid: 0 });
        self.send(request).await
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.ask(Method::GET, target, Body::empty()).await
    }

    pub(crate) async fn delete(&self, target: &str) -> Reply {
        self.ask(Method::DELETE, target, Body::empty()).await
    }

    pub(crate) async fn post(&self, target: &str, body: Value) -> Reply {
        self.ask(Method::POST, target, body.to_string()).await
    }

    /// Sends a request as it is: without a peer it comes from the network.
    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let answered = self.router.clone().oneshot(request);
        let response = tokio::time::timeout(PATIENCE, answered).await.expect("an answer").unwrap();
        let (parts, body) = response.into_parts();
        let body = tokio::time::timeout(PATIENCE, to_bytes(body, usize::MAX));
        Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.await.expect("a whole answer").unwrap(),
        }
    }

    /// A new session's id.
    pub(crate) async fn session(&self) -> String {
        let reply = self.post("/api/sessions", json!({ "trusted": true })).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["session_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn key(&self, scopes: &[Scope]) -> String {
        static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let request = CreateKey { name: format!("key-{count}"), scopes: Some(scopes.to_vec()) };
        self.service.create_key(request).await.unwrap().key
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The code of an error body.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// One recorder counts for the whole process.
fn metrics() -> metrics_exporter_prometheus::PrometheusHandle {
    static HANDLE: OnceLock<metrics_exporter_prometheus::PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| install_metrics().unwrap()).clone()
}
