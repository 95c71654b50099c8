//! The router and what its handlers share.

use std::{fmt, sync::Arc, time::Duration};

use atoll_service::{MountPolicy, Service};
use axum::{Router, handler::Handler as _, middleware};
use jiff::Timestamp;
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    access::{self, Access, Caller, Routes},
    archives, e2b, engines, environments,
    error::Error,
    executions, files, keys, observe, origin, ports, processes, search, server, sessions, terminal,
};

/// What the server's operator decides about its surface.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names clients may call this server by, besides loopback and the address they reached.
    pub hosts: Vec<String>,
    /// Where `/metrics` gets its figures, if anywhere.
    pub metrics: Option<PrometheusHandle>,
    /// The version told to clients.
    pub version: String,
    /// Once cancelled, streams that would never end do.
    pub closing: CancellationToken,
    /// How long a program in a sandbox may take to answer, or to take more of a request.
    pub port_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            metrics: None,
            version: String::new(),
            closing: CancellationToken::new(),
            port_timeout: Duration::from_mins(1),
        }
    }
}

/// What every handler can reach.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) service: Service,
    pub(crate) settings: Arc<Settings>,
    pub(crate) started_at: Timestamp,
    pub(crate) terminals: terminal::Room,
}

impl App {
    /// The service with the caller's rights: the operator may mount what is theirs, a key's holder
    /// what the operator lists.
    pub(crate) fn service_for(&self, caller: &Caller) -> Service {
        match caller {
            Caller::Operator { uid } => self.service.with_mounts(MountPolicy::OwnedBy(*uid)),
            Caller::Holder(_) | Caller::Anyone => self.service.clone(),
        }
    }
}

/// The whole surface over a service.
///
/// A request without a [`Peer`](crate::Peer) is taken for one from TCP.
pub fn router(service: Service, settings: Settings) -> Router {
    let app = App {
        service,
        settings: Arc::new(settings),
        started_at: Timestamp::now(),
        terminals: terminal::Room::default(),
    };
    let gate = |access| middleware::from_fn_with_state((app.clone(), access), access::admit);
    routes()
        .into_router(&app)
        .fallback(not_found.layer(gate(Access::AnyKey)))
        .method_not_allowed_fallback(method_not_allowed.layer(gate(Access::AnyKey)))
        .layer(middleware::from_fn_with_state(app.clone(), origin::check))
        .layer(middleware::from_fn(observe::observe))
        .with_state(app)
}

/// Every route there is.
pub(crate) fn routes() -> Routes {
    sessions::routes()
        .and(executions::routes())
        .and(files::routes())
        .and(search::routes())
        .and(archives::routes())
        .and(processes::routes())
        .and(ports::routes())
        .and(terminal::routes())
        .and(engines::routes())
        .and(environments::routes())
        .and(keys::routes())
        .and(e2b::routes())
        .and(server::routes())
}

/// Makes this process count its requests; once per process.
pub fn install_metrics() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new().install_recorder()
}

async fn not_found() -> Error {
    Error::not_found("there is nothing at this path").hint("GET /openapi.json lists what there is")
}

async fn method_not_allowed() -> Error {
    Error::method_not_allowed()
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("settings", &self.settings).finish_non_exhaustive()
    }
}
