//! The server's log, on standard error.

use tracing_subscriber::EnvFilter;

use crate::failure::{Doing as _, Failure, Result};

/// Begins to log what the filter lets through. An idle server at the default level is silent.
pub(crate) fn begin(filter: &str) -> Result {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| Failure::new(format!("log: `{filter}` is not a filter: {error}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init()
        .doing(|| "cannot begin to log".into())
}
