//! Sessions: made, looked at, kept and ended.

mod create;
mod end;
mod wish;

use std::{collections::BTreeMap, sync::Arc};

use atoll_store::{SessionRecord, SessionsQuery};
use atoll_types::{
    engine::Grade,
    id::SessionId,
    limits::Limits,
    quantity::Span,
    session::{End, Metrics, MountRequest, Session, SessionPage, State},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use wish::Made;
pub(crate) use wish::{Wish, check_env};

use crate::{Code, Error, Result, Service, clock, limits, live::Live};

/// In which part of their life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Not ended yet.
    #[default]
    Living,
    In(State),
    All,
}

/// Which sessions to list. What is not said does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    pub state: Wanted,
    pub environment: Option<String>,
    pub engine: Option<String>,
    pub metadata: BTreeMap<String, String>,
    /// At most 1000; 100 if not said.
    pub limit: Option<u32>,
    /// A page's `next`.
    pub after: Option<String>,
}

/// What is kept of a session's making. Its variables are not: they may be secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    #[serde(default)]
    pub limits: Limits,
    /// Of limits that do not hold fully.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grades: Vec<Grade>,
    #[serde(default)]
    pub mounts: Vec<MountRequest>,
    #[serde(default)]
    pub trusted: bool,
}

impl Service {
    /// Finds a session; one that ended is told as it ended, for as long as it is remembered.
    pub async fn session(&self, id: &SessionId) -> Result<Session> {
        let record = self.inner.store.session(id).await?;
        record.map(show).ok_or_else(|| unknown(id))
    }

    /// Lists sessions, newest first; those that ended only if asked for.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<SessionPage> {
        let limit = filter.limit.unwrap_or(100);
        if !(1..=1000).contains(&limit) {
            return Err(Error::invalid("`limit` must be from 1 to 1000"));
        }
        let query = SessionsQuery {
            state: match filter.state {
                Wanted::In(state) => Some(state),
                Wanted::Living | Wanted::All => None,
            },
            open: filter.state == Wanted::Living,
            environment: filter.environment.map(|name| match self.inner.environments.find(&name) {
                Ok(found) => found.name.clone(),
                Err(_) => name,
            }),
            engine: filter.engine.map(|name| crate::Engines::canonical(&name).to_owned()),
            metadata: filter.metadata,
            after: filter.after.as_deref().map(cursor).transpose()?,
            // One more, to know whether there is a next page.
            limit: limit.saturating_add(1),
        };
        let mut records = self.inner.store.sessions(&query).await?;
        let more = records.len() > limit as usize;
        records.truncate(limit as usize);
        let next = records
            .last()
            .filter(|_| more)
            .map(|last| format!("{}-{}", last.created.as_microsecond(), last.id));
        Ok(SessionPage { sessions: records.into_iter().map(show).collect(), next })
    }

    /// Lets a session live that long from now.
    pub async fn set_timeout(&self, id: &SessionId, timeout: Span) -> Result<Session> {
        let live = self.live(id).await?;
        let _held = live.hold();
        let most = self.inner.settings.max_session_timeout;
        let expires = deadline(limits::span("timeout", timeout, Some(most))?)?;
        if !self.inner.store.set_deadline(id, expires).await? {
            return Err(self.absent(id).await);
        }
        live.set_expires(expires);
        self.session(id).await
    }

    /// What a session's sandbox uses now.
    pub async fn metrics(&self, id: &SessionId) -> Result<Metrics> {
        let live = self.live(id).await?;
        let _held = live.hold();
        let usage = live.sandbox.usage().await?;
        Ok(Metrics {
            cpu_time: usage.cpu_time.map(Span),
            memory: usage.memory,
            peak_memory: usage.peak_memory,
            pids: usage.pids,
            disk_used: usage.disk_used,
            disk_total: usage.disk_total,
        })
    }

    /// The session in hand, or why it cannot be used.
    pub(crate) async fn live(&self, id: &SessionId) -> Result<Arc<Live>> {
        match self.find_live(id) {
            Some(live) => Ok(live),
            None => Err(self.absent(id).await),
        }
    }

    /// Why a session is not in hand.
    pub(crate) async fn absent(&self, id: &SessionId) -> Error {
        let record = match self.inner.store.session(id).await {
            Ok(Some(record)) => record,
            Ok(None) => return unknown(id),
            Err(error) => return error.into(),
        };
        match record.state {
            State::Creating => {
                Error::new(Code::Conflict, format!("session `{id}` is still being made"))
            }
            State::Ready | State::Busy => Error::new(
                Code::EngineUnavailable,
                format!("session `{id}` cannot be reached: its engine does not answer"),
            ),
            State::Lost => Error::new(
                Code::SessionLost,
                format!("session `{id}` is lost: its sandbox went away by itself"),
            )
            .hint("create a new session"),
            State::Destroying | State::Gone | State::Failed => {
                let why = record.end.map_or("it ended", reason);
                Error::not_found(format!("session `{id}` is no longer there: {why}"))
            }
        }
    }
}

pub(crate) fn reason(end: End) -> &'static str {
    match end {
        End::Deleted => "it was deleted",
        End::Expired => "its deadline came",
        End::Idle => "nothing happened in it for too long",
        End::CreateFailed => "its sandbox could not be made",
        End::SandboxLost => "its sandbox went away by itself",
        End::ServerStopped => "the server stopped",
    }
}

pub(crate) fn unknown(id: &SessionId) -> Error {
    Error::not_found(format!("there is no session `{id}`"))
}

/// The time that far from now.
pub(crate) fn deadline(lifetime: std::time::Duration) -> Result<Timestamp> {
    clock::in_future(lifetime).ok_or_else(|| Error::invalid("`timeout` is past counting"))
}

pub(crate) fn show(record: SessionRecord) -> Session {
    let kept: Kept = serde_json::from_value(record.spec).unwrap_or_default();
    Session {
        url: format!("/api/sessions/{}", record.id),
        session_id: record.id,
        sandbox_id: record.sandbox,
        provider: record.engine.clone(),
        engine: record.engine,
        environment: record.environment,
        state: record.state,
        end: record.end,
        created_at: record.created,
        expires_at: record.expires,
        limits: kept.limits,
        grades: kept.grades,
        metadata: record.metadata,
    }
}

/// Reads a page's `next`.
fn cursor(text: &str) -> Result<(Timestamp, SessionId)> {
    let parse = || {
        let (created, id) = text.split_once('-')?;
        let created = Timestamp::from_microsecond(created.parse().ok()?).ok()?;
        Some((created, id.parse().ok()?))
    };
    parse().ok_or_else(|| Error::invalid("`after` is not the `next` of a page"))
}
