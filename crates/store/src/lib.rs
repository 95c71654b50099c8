//! What Atoll must still know after it was killed: sessions, executions and keys, in one SQLite
//! file.
//!
//! A method is a transaction is a sentence. Rows carry what the service decided; what an engine can
//! tell is not kept here. Writes survive `kill -9` of the process; a power cut may undo the last
//! ones (`synchronous = normal`), never damage the file.

mod error;
mod execution;
mod file;
mod key;
mod migration;
mod session;
mod value;

use sqlx::SqlitePool;

pub use error::{Error, ErrorKind, Result};
pub use execution::{Execution, ExecutionState};
pub use key::KeyRecord;
pub use session::{SessionRecord, SessionsQuery, Transition};

/// The records of one Atoll. Cheap to clone; any number of processes may have the file open.
#[derive(Debug, Clone)]
pub struct Store {
    pool: SqlitePool,
}
