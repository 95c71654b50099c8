//! Ends what is over: deadlines that came, sessions in which nothing happens.
//!
//! Idle means that nobody asks, no stream is open, no process runs and no processor time was used
//! since the last look. A silent server that computes for hours is not idle.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use atoll_types::session::End;
use futures_util::{StreamExt as _, stream};

use crate::{
    Service, clock,
    live::{Live, Repose},
};

/// How often what failed is tried again.
const RETRY: Duration = Duration::from_secs(30);
/// How often old records are forgotten.
const FORGET: Duration = Duration::from_hours(1);
/// How many sessions are looked at and ended at a time.
const ABREAST: usize = 8;

impl Service {
    /// Looks after the sessions until the server stops.
    pub(crate) async fn reap(&self) {
        let mut ticks = tokio::time::interval(self.inner.settings.reap_every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut retried, mut forgot) = (Instant::now(), None::<Instant>);
        loop {
            tokio::select! {
                () = self.inner.stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            stream::iter(self.all_live())
                .for_each_concurrent(ABREAST, |live| async move { self.look_after(&live).await })
                .await;
            if retried.elapsed() > RETRY {
                self.retry().await;
                retried = Instant::now();
            }
            if forgot.is_none_or(|forgot| forgot.elapsed() > FORGET) {
                self.forget().await;
                forgot = Some(Instant::now());
            }
        }
    }

    async fn look_after(&self, live: &Arc<Live>) {
        let end = if live.expires() <= clock::now() {
            End::Expired
        } else if self.is_idle(live).await {
            End::Idle
        } else {
            return;
        };
        tracing::info!(session = %live.id, ?end, "session over");
        if let Err(error) = self.end_session(&live.id, end).await {
            tracing::warn!(session = %live.id, %error, "session not ended");
        }
    }

    async fn is_idle(&self, live: &Arc<Live>) -> bool {
        let Some(patience) = self.inner.settings.idle_timeout else { return false };
        match live.repose() {
            Repose::Quiet(quiet) if quiet >= patience => {}
            _ => return false,
        }
        let works = works(live).await;
        if works {
            live.touch();
        }
        // A request may have come while we looked.
        !works && matches!(live.repose(), Repose::Quiet(quiet) if quiet >= patience)
    }

    /// Tries again to reach what could not be reached, and to remove what could not be removed.
    async fn retry(&self) {
        if let Err(error) = self.reach_again().await {
            tracing::warn!(%error, "sessions not looked for again");
        }
        let undone: Vec<_> = self.undone().clone().into_iter().collect();
        for (sandbox, (engine, session)) in undone {
            if let Err(error) = self.remove_sandbox(&engine, &sandbox, session.as_ref()).await {
                tracing::warn!(%sandbox, %error, "sandbox still not removed");
            }
        }
    }

    async fn forget(&self) {
        let Some(then) = clock::ago(self.inner.settings.keep_records) else { return };
        match self.inner.store.forget_before(then).await {
            Ok(0) => {}
            Ok(rows) => tracing::debug!(rows, "old records forgotten"),
            Err(error) => tracing::warn!(%error, "old records not forgotten"),
        }
    }
}

/// Whether a process runs, or processor time was used since the last look. A sandbox that does not
/// answer is not idle: it is lost, and found so elsewhere.
async fn works(live: &Live) -> bool {
    let running = match live.sandbox.processes().await {
        Ok(processes) => processes.iter().any(|process| process.outcome.is_none()),
        Err(_) => true,
    };
    let cpu_time = live.sandbox.usage().await.ok().and_then(|usage| usage.cpu_time);
    let used = cpu_time.is_some_and(|cpu_time| live.worked(cpu_time));
    running || used
}
