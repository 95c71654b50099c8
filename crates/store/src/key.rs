//! API keys: who may call. Only a hash of a key's secret is ever here.

use atoll_types::key::Scope;
use jiff::Timestamp;
use sqlx::{Row as _, sqlite::SqliteRow};

use crate::{
    Result, Store,
    value::{from_json, from_micros, json},
};

/// A key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: String,
    /// Given by people; no two keys share one.
    pub name: String,
    /// SHA-256 of the secret.
    pub hash: Vec<u8>,
    pub scopes: Vec<Scope>,
    pub created: Timestamp,
}

impl Store {
    /// Adds a key; one of the same name or id is
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists).
    pub async fn insert_key(&self, key: &KeyRecord) -> Result<()> {
        sqlx::query(
            "insert into keys (id, name, hash, scopes, created) values (?1, ?2, ?3, ?4, ?5)",
        )
        .bind(&key.id)
        .bind(&key.name)
        .bind(&key.hash)
        .bind(json(&key.scopes))
        .bind(key.created.as_microsecond())
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Finds a key by its id.
    pub async fn key(&self, id: &str) -> Result<Option<KeyRecord>> {
        let row = sqlx::query("select * from keys where id = ?1")
            .bind(id)
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// Lists the keys, oldest first.
    pub async fn keys(&self) -> Result<Vec<KeyRecord>> {
        let rows =
            sqlx::query("select * from keys order by created, id").fetch_all(&self.pool).await?;
        rows.iter().map(read).collect()
    }

    /// Removes the key of that id or name; false if there is none.
    pub async fn remove_key(&self, id_or_name: &str) -> Result<bool> {
        let done = sqlx::query("delete from keys where id = ?1 or name = ?1")
            .bind(id_or_name)
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }
}

fn read(row: &SqliteRow) -> Result<KeyRecord> {
    Ok(KeyRecord {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        hash: row.try_get("hash")?,
        scopes: from_json("key's scopes", row.try_get("scopes")?)?,
        created: from_micros("time", row.try_get("created")?)?,
    })
}
