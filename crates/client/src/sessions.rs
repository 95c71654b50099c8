//! Sessions.

use atoll_types::{
    id::{SandboxId, SessionId},
    quantity::Span,
    session::{CreateSession, Metrics, Session, SessionPage, SetTimeout, State},
};

use crate::{Client, error::Result, query};

/// Which sessions to list; nothing said is all that have not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub state: Option<State>,
    /// Those that ended too; `state` says more than this.
    pub all: bool,
    pub environment: Option<String>,
    pub engine: Option<String>,
    /// Sessions that have all of these.
    pub metadata: Vec<(String, String)>,
    pub limit: Option<u32>,
    /// The `next` of the page before.
    pub after: Option<String>,
}

impl Client {
    /// Makes a session; it is ready when this returns.
    pub async fn create_session(&self, request: &CreateSession) -> Result<Session> {
        self.post("/api/sessions", request).await
    }

    /// One page of sessions, newest first.
    pub async fn sessions(&self, filter: &Filter) -> Result<SessionPage> {
        let state = filter.state.map(word).or_else(|| filter.all.then(|| "all".to_owned()));
        let limit = filter.limit.map(|limit| limit.to_string());
        let said = [
            ("state", state.as_deref()),
            ("environment", filter.environment.as_deref()),
            ("engine", filter.engine.as_deref()),
            ("limit", limit.as_deref()),
            ("after", filter.after.as_deref()),
        ];
        let metadata: Vec<_> = filter
            .metadata
            .iter()
            .map(|(name, value)| (format!("metadata.{name}"), value.as_str()))
            .collect();
        let pairs = said
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .chain(metadata.iter().map(|(name, value)| (name.as_str(), *value)));
        self.get(&query::with("/api/sessions", pairs)).await
    }

    pub async fn session(&self, id: &SessionId) -> Result<Session> {
        self.get(&at(id, "")).await
    }

    /// Ends a session, provided it still has `sandbox`, if one is named.
    pub async fn delete_session(&self, id: &SessionId, sandbox: Option<&SandboxId>) -> Result<()> {
        let pairs = sandbox.map(|sandbox| ("sandbox_id", sandbox.as_str()));
        self.delete(&query::with(&at(id, ""), pairs)).await
    }

    /// Lets a session live this long from now.
    pub async fn set_timeout(&self, id: &SessionId, timeout: Span) -> Result<Session> {
        self.post(&at(id, "/timeout"), &SetTimeout { timeout }).await
    }

    /// What the session's sandbox uses now.
    pub async fn metrics(&self, id: &SessionId) -> Result<Metrics> {
        self.get(&at(id, "/metrics")).await
    }
}

/// The path of something of a session.
pub(crate) fn at(id: &SessionId, rest: &str) -> String {
    format!("/api/sessions/{id}{rest}")
}

/// A state as the wire spells it.
fn word(state: State) -> String {
    serde_json::to_value(state)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}
