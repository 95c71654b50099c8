//! A session whose sandbox is in hand, and how lately it was used.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use atoll_engine::{Engine, Sandbox};
use atoll_types::{
    id::{SandboxId, SessionId},
    limits::Limits,
};
use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use crate::{environments::Environment, executions::Place};

/// One place of those that [`Settings::max_sessions`](crate::Settings::max_sessions) counts; none
/// for adopted sessions beyond it.
pub(crate) type Permit = Option<OwnedSemaphorePermit>;

#[derive(Debug)]
pub(crate) struct Live {
    pub id: SessionId,
    pub sandbox_id: SandboxId,
    pub engine: Arc<dyn Engine>,
    pub sandbox: Arc<dyn Sandbox>,
    pub environment: Arc<Environment>,
    pub limits: Limits,
    activity: Mutex<Activity>,
    _permit: Permit,
}

#[derive(Debug)]
struct Activity {
    expires: Timestamp,
    /// Requests under way and streams open.
    uses: usize,
    last: Instant,
    /// The processor time at the last look.
    cpu_time: Option<Duration>,
}

/// What the reaper finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repose {
    InUse,
    /// Nobody asked anything for this long.
    Quiet(Duration),
}

impl Live {
    #[expect(clippy::too_many_arguments, reason = "it is what a session is made of")]
    pub(crate) fn new(
        id: SessionId,
        sandbox_id: SandboxId,
        engine: Arc<dyn Engine>,
        sandbox: Arc<dyn Sandbox>,
        environment: Arc<Environment>,
        limits: Limits,
        expires: Timestamp,
        permit: Permit,
    ) -> Arc<Self> {
        let activity = Activity { expires, uses: 0, last: Instant::now(), cpu_time: None };
        let activity = Mutex::new(activity);
        Arc::new(Self {
            id,
            sandbox_id,
            engine,
            sandbox,
            environment,
            limits,
            activity,
            _permit: permit,
        })
    }

    /// Marks the session as used until the guard is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> Held {
        let mut activity = self.activity();
        activity.uses = activity.uses.saturating_add(1);
        drop(activity);
        Held(Arc::clone(self))
    }

    pub(crate) fn repose(&self) -> Repose {
        let activity = self.activity();
        if activity.uses > 0 { Repose::InUse } else { Repose::Quiet(activity.last.elapsed()) }
    }

    pub(crate) fn expires(&self) -> Timestamp {
        self.activity().expires
    }

    pub(crate) fn set_expires(&self, expires: Timestamp) {
        self.activity().expires = expires;
    }

    /// Something happened in it: idling starts anew.
    pub(crate) fn touch(&self) {
        self.activity().last = Instant::now();
    }

    /// Notes the processor time used so far; says whether that is more than at the last look, or
    /// this is the first one.
    pub(crate) fn worked(&self, cpu_time: Duration) -> bool {
        let before = self.activity().cpu_time.replace(cpu_time);
        before.is_none_or(|before| cpu_time > before)
    }

    /// The sandbox, as far as planning is concerned.
    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            environment: &self.environment,
            limits: &self.limits,
            isolation: self.engine.isolation(),
        }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a session from being idle.
#[derive(Debug)]
pub(crate) struct Held(Arc<Live>);

impl Drop for Held {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.uses = activity.uses.saturating_sub(1);
        activity.last = Instant::now();
    }
}
