//! Every figure the service counts, in one place.
//!
//! | name | kind | labels |
//! |---|---|---|
//! | `atoll_sessions_created_total` | counter | `engine` |
//! | `atoll_sessions_ended_total` | counter | `reason` |
//! | `atoll_sessions_live` | gauge | |
//! | `atoll_session_create_seconds` | histogram | `engine` |
//! | `atoll_executions_total` | counter | `reason` |
//! | `atoll_execution_seconds` | histogram | |
//! | `atoll_reconciled_total` | counter | `what` |

use std::time::Duration;

use atoll_types::{execution::Reason, session::End};
use metrics::{counter, gauge, histogram};

pub(crate) fn session_created(engine: &'static str, took: Duration) {
    counter!("atoll_sessions_created_total", "engine" => engine).increment(1);
    histogram!("atoll_session_create_seconds", "engine" => engine).record(took.as_secs_f64());
}

pub(crate) fn session_ended(end: End) {
    let reason = match end {
        End::Deleted => "deleted",
        End::Expired => "expired",
        End::Idle => "idle",
        End::CreateFailed => "create_failed",
        End::SandboxLost => "sandbox_lost",
        End::ServerStopped => "server_stopped",
    };
    counter!("atoll_sessions_ended_total", "reason" => reason).increment(1);
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 sessions")]
pub(crate) fn sessions_live(count: usize) {
    gauge!("atoll_sessions_live").set(count as f64);
}

pub(crate) fn execution_ended(reason: Reason, took: Duration) {
    counter!("atoll_executions_total", "reason" => word(reason)).increment(1);
    histogram!("atoll_execution_seconds").record(took.as_secs_f64());
}

pub(crate) fn reconciled(what: &'static str, count: usize) {
    counter!("atoll_reconciled_total", "what" => what)
        .increment(u64::try_from(count).unwrap_or(u64::MAX));
}

fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Exited => "exited",
        Reason::Signaled => "signaled",
        Reason::Timeout => "timeout",
        Reason::Oom => "oom",
        Reason::OutputLimit => "output_limit",
        Reason::Denied => "denied",
        Reason::Cancelled => "cancelled",
        Reason::Lost => "lost",
        Reason::EngineFault => "engine_fault",
    }
}
