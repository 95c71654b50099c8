//! A Python of the sandbox's own.

use std::{path::Path, process::Stdio, time::Duration};

use atoll_engine::{Error, Result};
use tokio::{process::Command, time};

/// How long making one may take.
const PATIENCE: Duration = Duration::from_mins(1);

const HINT: &str = "install python3 with its venv module (Debian: apt install python3)";

/// Makes a virtual environment with the first `python3` in `path`.
///
/// Without an installer, which takes seconds to unpack; `python -m ensurepip` adds it.
pub(crate) async fn make(directory: &Path, home: &Path, path: &str) -> Result<()> {
    let making = Command::new("/usr/bin/env")
        .args(["python3", "-m", "venv", "--without-pip"])
        .arg(directory)
        .current_dir(home)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let unavailable = || Error::unavailable("no virtual environment could be made").hint(HINT);
    let output = time::timeout(PATIENCE, making)
        .await
        .map_err(|elapsed| unavailable().because(elapsed))?
        .map_err(|error| unavailable().because(error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(unavailable().because(String::from_utf8_lossy(&output.stderr).into_owned()))
}
