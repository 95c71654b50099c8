//! Opening the file, and never mistaking a broken one for a new one.
//!
//! SQLite takes an empty file for an empty database. So a new store is made beside its place and
//! put there whole: a file that is there and empty was cut short, and is refused.

use std::{
    fs, io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, Connection as _,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::{Error, ErrorKind, Result, Store, migration};

impl Store {
    /// Opens the store at `path`, making it if nothing is there; its directory must exist.
    ///
    /// The file is readable by its owner only. One that is damaged, cut short, of another program
    /// or of a newer Atoll is refused and left as it is.
    pub async fn open(path: &Path) -> Result<Self> {
        let named = |error: Error| {
            Error::new(error.kind(), format!("{}: {error}", path.display())).because(error)
        };
        let unusable = |error: io::Error| {
            let message = format!("the store at {} cannot be opened", path.display());
            Error::new(ErrorKind::Unavailable, message).because(error)
        };
        match fs::metadata(path) {
            Ok(found) if found.len() == 0 => {
                let message = format!("{}: the store's file is empty: cut short", path.display());
                return Err(Error::new(ErrorKind::Damaged, message));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(path).await.map_err(named)?;
            }
            Err(error) => return Err(unusable(error)),
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(unusable)?;
        Self::connect(path).await.map_err(named)
    }

    /// A store that is forgotten with its last handle.
    pub async fn in_memory() -> Result<Self> {
        let options = SqliteConnectOptions::new().in_memory(true);
        let pool = pool().connect_with(options).await?;
        migration::apply(&mut *pool.acquire().await?).await?;
        Ok(Self { pool })
    }

    /// Closes the file. Other handles fail from then on.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn connect(path: &Path) -> Result<Self> {
        // Looked at before anything is changed, the journal mode included.
        let mut first = options(path).connect().await?;
        migration::check(&mut first).await?;
        first.close().await?;

        let options = options(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal);
        let pool = pool().connect_with(options).await?;
        migration::apply(&mut *pool.acquire().await?).await?;
        Ok(Self { pool })
    }
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .busy_timeout(Duration::from_secs(10))
}

/// One connection: SQLite writes one at a time, and a read takes microseconds.
fn pool() -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// Makes a whole store in a file of another name, then gives it its own.
async fn make(path: &Path) -> Result<()> {
    let draft = Draft::new(path)?;
    // The mode is part of the file: changing it later would need the file alone.
    let mut connection = options(&draft.0).journal_mode(SqliteJournalMode::Wal).connect().await?;
    migration::apply(&mut connection).await?;
    connection.close().await?;
    match fs::hard_link(&draft.0, path) {
        // Another process was quicker, with a store as new as this one.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(unmakable),
    }
}

/// A file that is removed when it is no longer wanted under this name.
struct Draft(PathBuf);

impl Draft {
    fn new(path: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".new-{}-{count}", std::process::id()));
        let path = PathBuf::from(name);
        let mut open = fs::OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600).open(&path).map_err(unmakable)?;
        Ok(Self(path))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = self.0.clone().into_os_string();
            name.push(suffix);
            // It is only a second name, or a draft nobody will miss.
            let _ = fs::remove_file(name);
        }
    }
}

fn unmakable(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the store's file cannot be made").because(error)
}
