//! What was run: written before it runs, and once when it has ended.

use atoll_types::id::{ProcessId, SandboxId, SessionId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use crate::{
    Error, Result, Store,
    value::{from_json, from_micros, from_word, word},
};

/// An execution as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    pub id: String,
    /// A session's, or one that only this execution had.
    pub session: SessionId,
    pub sandbox: SandboxId,
    /// What was asked for, shortened.
    pub summary: String,
    pub state: ExecutionState,
    /// Its process in the sandbox, from when it was started.
    pub process: Option<ProcessId>,
    pub created: Timestamp,
    /// The result, or why it was refused.
    pub result: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionState {
    Running,
    /// It has a result.
    Ended,
    /// It never ran.
    Refused,
}

/// A session is busy while an execution runs in it.
const SETTLE: &str = "
    update sessions set last_activity = max(last_activity, ?2), state = case
        when exists (select 1 from executions where session = ?1 and state = 'running')
        then 'busy' else 'ready' end
    where id = ?1 and state in ('ready', 'busy')";

impl Store {
    /// Adds an execution that is about to run, and marks its session busy.
    pub async fn begin_execution(&self, execution: &Execution) -> Result<()> {
        let mut transaction = self.pool.begin_with("begin immediate").await?;
        sqlx::query(
            "insert into executions (id, session, sandbox, summary, state, process, created, result)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )
        .bind(&execution.id)
        .bind(execution.session.as_str())
        .bind(execution.sandbox.as_str())
        .bind(&execution.summary)
        .bind(word(&execution.state))
        .bind(execution.process.and_then(|process| i64::try_from(process.0).ok()))
        .bind(execution.created.as_microsecond())
        .bind(execution.result.as_ref().map(Value::to_string))
        .execute(&mut *transaction)
        .await?;
        settle(&mut transaction, &execution.session, execution.created).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Notes which process of the sandbox an execution is, so that it can be found again.
    pub async fn execution_started(&self, id: &str, process: ProcessId) -> Result<()> {
        sqlx::query("update executions set process = ?2 where id = ?1 and state = 'running'")
            .bind(id)
            .bind(i64::try_from(process.0).unwrap_or(i64::MAX))
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Writes how a running execution ended; false, and nothing is changed, if it has ended.
    pub async fn end_execution(
        &self,
        id: &str,
        state: ExecutionState,
        result: &Value,
        at: Timestamp,
    ) -> Result<bool> {
        let mut transaction = self.pool.begin_with("begin immediate").await?;
        let session: Option<String> = sqlx::query_scalar(
            "update executions set state = ?2, result = ?3 where id = ?1 and state = 'running'
             returning session",
        )
        .bind(id)
        .bind(word(&state))
        .bind(result.to_string())
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(session) = session else { return Ok(false) };
        let session = session.try_into().map_err(|error| Error::row("session id", error))?;
        settle(&mut transaction, &session, at).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Finds an execution.
    pub async fn execution(&self, id: &str) -> Result<Option<Execution>> {
        let row = sqlx::query("select * from executions where id = ?1")
            .bind(id)
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// Lists the executions that have not ended, oldest first.
    pub async fn running_executions(&self) -> Result<Vec<Execution>> {
        let rows =
            sqlx::query("select * from executions where state = 'running' order by created, id")
                .fetch_all(&self.pool)
                .await?;
        rows.iter().map(read).collect()
    }
}

async fn settle(
    connection: &mut SqliteConnection,
    session: &SessionId,
    now: Timestamp,
) -> Result<()> {
    sqlx::query(SETTLE)
        .bind(session.as_str())
        .bind(now.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

fn read(row: &SqliteRow) -> Result<Execution> {
    let id = |name: &str| row.try_get::<String, _>(name);
    Ok(Execution {
        id: id("id")?,
        session: id("session")?.try_into().map_err(|error| Error::row("session id", error))?,
        sandbox: id("sandbox")?.try_into().map_err(|error| Error::row("sandbox id", error))?,
        summary: row.try_get("summary")?,
        state: from_word("execution state", row.try_get("state")?)?,
        process: row
            .try_get::<Option<i64>, _>("process")?
            .and_then(|process| u64::try_from(process).ok())
            .map(ProcessId),
        created: from_micros("time", row.try_get("created")?)?,
        result: row
            .try_get::<Option<String>, _>("result")?
            .map(|text| from_json("result", &text))
            .transpose()?,
    })
}
