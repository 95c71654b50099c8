//! Stopping a server that another command started.

use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{Place, Record};
use crate::failure::{Doing as _, Failure, Result};

/// How long a server may take to finish what it is doing.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) const AGAIN: Duration = Duration::from_millis(5);

/// Asks a server to stop, and returns when it has. Its sandboxes live on.
pub(crate) async fn stop(place: &Place, record: &Record) -> Result {
    let cannot = || format!("cannot stop the server (pid {})", record.pid);
    let pid = i32::try_from(record.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::new(cannot()))?;
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    // The handle keeps the number from being another process's; this was it when it was opened.
    if !record.lives() {
        return Ok(());
    }
    pidfd_send_signal(&handle, Signal::TERM).doing(cannot)?;
    let deadline = Instant::now() + PATIENCE;
    while record.lives() {
        if Instant::now() > deadline {
            return Err(Failure::new(format!("the server (pid {}) does not stop", record.pid))
                .hint(format!("its log: {}", place.log().display())));
        }
        tokio::time::sleep(AGAIN).await;
    }
    Ok(())
}
