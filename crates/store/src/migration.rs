//! Brings a store's schema up to date, one numbered file after the other.

use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnection as Connection};

use crate::{Error, ErrorKind, Result};

/// Marks a file as a store of Atoll's: `atol`.
const APPLICATION: i32 = 0x61_74_6f_6c;

const MIGRATIONS: [&str; 1] = [include_str!("../migrations/0001_first.sql")];

/// Refuses a file that is not ours, is damaged, or is newer than this program.
pub(crate) async fn check(connection: &mut SqliteConnection) -> Result<()> {
    let application: i32 =
        sqlx::query_scalar("pragma application_id").fetch_one(&mut *connection).await?;
    if application != APPLICATION {
        return Err(Error::new(ErrorKind::Damaged, "the file is not a store of Atoll's"));
    }
    let problem: String =
        sqlx::query_scalar("pragma quick_check(1)").fetch_one(&mut *connection).await?;
    if problem != "ok" {
        return Err(Error::new(ErrorKind::Damaged, "the store's file is damaged").because(problem));
    }
    let version = version(connection).await?;
    if version > MIGRATIONS.len() {
        let message = format!(
            "the store was written by a newer Atoll (schema {version}; this one knows {})",
            MIGRATIONS.len()
        );
        return Err(Error::new(ErrorKind::Newer, message));
    }
    Ok(())
}

/// Applies what is missing, each file in a transaction of its own.
pub(crate) async fn apply(connection: &mut Connection) -> Result<()> {
    loop {
        let mut transaction = connection.begin_with("begin immediate").await?;
        let done = version(&mut transaction).await?;
        let Some(next) = MIGRATIONS.get(done) else { return Ok(()) };
        sqlx::raw_sql(*next).execute(&mut *transaction).await?;
        let mark = format!(
            "pragma application_id = {APPLICATION}; pragma user_version = {}",
            done.saturating_add(1)
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(mark)).execute(&mut *transaction).await?;
        transaction.commit().await?;
    }
}

async fn version(connection: &mut SqliteConnection) -> Result<usize> {
    let version: i64 = sqlx::query_scalar("pragma user_version").fetch_one(connection).await?;
    usize::try_from(version).map_err(|error| Error::row("schema version", error))
}
