//! The sessions there are and were.

use std::collections::BTreeMap;

use atoll_types::{
    id::{SandboxId, SessionId},
    session::{End, State},
};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::{QueryBuilder, Row as _, Sqlite, sqlite::SqliteRow};

use crate::{
    Error, Result, Store,
    value::{from_json, from_micros, from_word, json, word},
};

/// A session as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRecord {
    pub id: SessionId,
    pub sandbox: SandboxId,
    pub engine: String,
    pub environment: String,
    pub state: State,
    /// Why it ended, or is about to.
    pub end: Option<End>,
    pub created: Timestamp,
    pub expires: Timestamp,
    pub last_activity: Timestamp,
    /// What the service needs to know of its making, in the service's own words.
    pub spec: Value,
    pub metadata: BTreeMap<String, String>,
}

/// Which sessions, and how many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionsQuery {
    pub state: Option<State>,
    /// Only those that have not ended.
    pub open: bool,
    pub environment: Option<String>,
    pub engine: Option<String>,
    /// Every one of these must be there.
    pub metadata: BTreeMap<String, String>,
    /// Those that follow this one, which need not be there any more.
    pub after: Option<(Timestamp, SessionId)>,
    pub limit: u32,
}

/// What became of a wish to change a session's state.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition<E> {
    /// The session as it is now.
    Done(Box<SessionRecord>),
    Refused(E),
    /// There is no such session.
    Missing,
}

impl Store {
    /// Adds a session.
    pub async fn insert_session(&self, session: &SessionRecord) -> Result<()> {
        sqlx::query(
            "insert into sessions (id, sandbox, engine, environment, state, end, created, expires,
                 last_activity, spec, metadata)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )
        .bind(session.id.as_str())
        .bind(session.sandbox.as_str())
        .bind(&session.engine)
        .bind(&session.environment)
        .bind(word(&session.state))
        .bind(session.end.as_ref().map(word))
        .bind(session.created.as_microsecond())
        .bind(session.expires.as_microsecond())
        .bind(session.last_activity.as_microsecond())
        .bind(session.spec.to_string())
        .bind(json(&session.metadata))
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Finds a session, ended ones too.
    pub async fn session(&self, id: &SessionId) -> Result<Option<SessionRecord>> {
        let row = sqlx::query("select * from sessions where id = ?1")
            .bind(id.as_str())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// Lists sessions, newest first.
    pub async fn sessions(&self, query: &SessionsQuery) -> Result<Vec<SessionRecord>> {
        let mut sql = QueryBuilder::<Sqlite>::new("select * from sessions where true");
        if let Some(state) = &query.state {
            sql.push(" and state = ").push_bind(word(state));
        }
        if query.open {
            sql.push(" and state in ('creating', 'ready', 'busy', 'destroying')");
        }
        if let Some(environment) = &query.environment {
            sql.push(" and environment = ").push_bind(environment.clone());
        }
        if let Some(engine) = &query.engine {
            sql.push(" and engine = ").push_bind(engine.clone());
        }
        for (key, value) in &query.metadata {
            sql.push(" and exists (select 1 from json_each(metadata) as m where m.key = ")
                .push_bind(key.clone())
                .push(" and m.value = ")
                .push_bind(value.clone())
                .push(")");
        }
        if let Some((created, id)) = &query.after {
            sql.push(" and (created, id) < (")
                .push_bind(created.as_microsecond())
                .push(", ")
                .push_bind(id.as_str().to_owned())
                .push(")");
        }
        sql.push(" order by created desc, id desc limit ").push_bind(i64::from(query.limit));
        let rows = sql.build().fetch_all(&self.pool).await?;
        rows.iter().map(read).collect()
    }

    /// Lists the sessions that have not ended, oldest first.
    pub async fn open_sessions(&self) -> Result<Vec<SessionRecord>> {
        let rows = sqlx::query(
            "select * from sessions where state in ('creating', 'ready', 'busy', 'destroying')
             order by created, id",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(read).collect()
    }

    /// Changes a session's state to what `next` makes of it, and notes why it ends, if it does.
    pub async fn advance<E>(
        &self,
        id: &SessionId,
        end: Option<End>,
        next: impl FnOnce(State) -> Result<State, E> + Send,
    ) -> Result<Transition<E>> {
        let mut transaction = self.pool.begin_with("begin immediate").await?;
        let row = sqlx::query("select * from sessions where id = ?1")
            .bind(id.as_str())
            .fetch_optional(&mut *transaction)
            .await?;
        let Some(mut session) = row.as_ref().map(read).transpose()? else {
            return Ok(Transition::Missing);
        };
        session.state = match next(session.state) {
            Ok(state) => state,
            Err(refused) => return Ok(Transition::Refused(refused)),
        };
        // The first reason is the true one: what follows is clearing up.
        session.end = session.end.or(end);
        sqlx::query("update sessions set state = ?2, end = ?3 where id = ?1")
            .bind(id.as_str())
            .bind(word(&session.state))
            .bind(session.end.as_ref().map(word))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(Transition::Done(Box::new(session)))
    }

    /// Moves a session's deadline; false if it has ended or never was.
    pub async fn set_deadline(&self, id: &SessionId, expires: Timestamp) -> Result<bool> {
        let done = sqlx::query(
            "update sessions set expires = ?2 where id = ?1 and state in ('ready', 'busy')",
        )
        .bind(id.as_str())
        .bind(expires.as_microsecond())
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Forgets what ended before then: sessions and executions. Says how many rows.
    pub async fn forget_before(&self, then: Timestamp) -> Result<u64> {
        let mut transaction = self.pool.begin_with("begin immediate").await?;
        let executions =
            sqlx::query("delete from executions where state <> 'running' and created < ?1")
                .bind(then.as_microsecond())
                .execute(&mut *transaction)
                .await?;
        let sessions = sqlx::query(
            "delete from sessions where state in ('gone', 'failed', 'lost')
                 and last_activity < ?1 and created < ?1",
        )
        .bind(then.as_microsecond())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(executions.rows_affected().saturating_add(sessions.rows_affected()))
    }
}

fn read(row: &SqliteRow) -> Result<SessionRecord> {
    let id = |name: &str| row.try_get::<String, _>(name);
    Ok(SessionRecord {
        id: id("id")?.try_into().map_err(|error| Error::row("session id", error))?,
        sandbox: id("sandbox")?.try_into().map_err(|error| Error::row("sandbox id", error))?,
        engine: row.try_get("engine")?,
        environment: row.try_get("environment")?,
        state: from_word("session state", row.try_get("state")?)?,
        end: row
            .try_get::<Option<String>, _>("end")?
            .map(|word| from_word("session end", &word))
            .transpose()?,
        created: from_micros("time", row.try_get("created")?)?,
        expires: from_micros("time", row.try_get("expires")?)?,
        last_activity: from_micros("time", row.try_get("last_activity")?)?,
        spec: from_json("session spec", row.try_get("spec")?)?,
        metadata: from_json("session metadata", row.try_get("metadata")?)?,
    })
}
