//! Sees every process to its end, whether or not anyone else looks: one task for each.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use atoll_agent_protocol::message::{Attach, Ended, request::Call, response::Answer};
use atoll_engine::{ErrorKind, Outcome, Result};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::{
    failure,
    ledger::Watched,
    line,
    sandbox::{GRACE, Inner},
    verdict::{Asked, Evidence},
};

/// How often the processor time of a process is looked at, where it is limited.
const GLANCE: Duration = Duration::from_millis(50);
/// How long to wait before an agent is asked again.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// How a process was seen to end.
enum Seen {
    /// The agent told.
    Ended(Ended),
    /// The agent knows nothing of it any more.
    Forgotten,
    /// Its time was over, and nothing was heard.
    Overdue,
    /// The sandbox is gone.
    Fallen,
}

impl Inner {
    /// Waits for the end of a process, keeps its limits, and judges it.
    pub(crate) async fn follow(self: Arc<Self>, watched: Arc<Watched>) {
        let seen = tokio::select! {
            biased;
            ended = watched.heard() => Seen::Ended(ended),
            seen = self.end_of(&watched) => seen,
            () = self.ended.cancelled() => Seen::Fallen,
            seen = self.overdue(&watched) => seen,
            never = self.limit_cpu_time(&watched) => match never {},
        };
        let outcome = match seen {
            Seen::Ended(ended) => self.judge(&watched, &ended).await,
            Seen::Forgotten => self.evidence(&watched).without_end(true),
            Seen::Fallen => self.evidence(&watched).without_end(false),
            Seen::Overdue => {
                watched.ask(Asked::Timeout);
                if let Err(error) = self.destroy().await {
                    tracing::error!(sandbox = %self.id(), %error, "an overdue sandbox is not gone");
                }
                self.evidence(&watched).without_end(false)
            }
        };
        watched.settle(outcome);
    }

    /// The agent's word on the end, asked for again whenever the link breaks.
    async fn end_of(&self, watched: &Watched) -> Seen {
        let _permit = self.waiting.acquire().await.expect("it is never closed");
        let mut pause = PAUSE;
        loop {
            match self.wait(watched).await {
                Ok(ended) => return Seen::Ended(ended),
                Err(error) if error.kind() == ErrorKind::NotFound => return Seen::Forgotten,
                Err(_) => sleep(pause).await,
            }
            pause = (pause * 2).min(GRACE);
        }
    }

    async fn wait(&self, watched: &Watched) -> Result<Ended> {
        let past_all = Attach { process: watched.id.0, stdout: u64::MAX, stderr: u64::MAX };
        let stream = self.calls.begin(Call::Attach(past_all)).await?;
        stream.finish();
        match line::answer(&stream).await? {
            Answer::Ended(ended) => Ok(ended),
            _ => Err(failure::nonsense()),
        }
    }

    /// Returns when the agent has failed to end a process in time.
    async fn overdue(self: &Arc<Self>, watched: &Watched) -> Seen {
        let (Some(timeout), Some(elapsed)) = (watched.note.timeout(), watched.note.elapsed())
        else {
            return pending().await;
        };
        sleep(timeout.saturating_add(GRACE).saturating_sub(elapsed)).await;
        // It may have ended long ago, and be one of so many that nobody was waiting for it.
        let listed = line::within(GRACE, self.processes()).await;
        let ended = listed.ok().and_then(|mut all| all.remove(&watched.id)?.0.ended);
        ended.map_or(Seen::Overdue, Seen::Ended)
    }

    async fn limit_cpu_time(self: &Arc<Self>, watched: &Arc<Watched>) -> Infallible {
        let Some(limit) = watched.note.cpu_limit() else { return pending().await };
        let mut glance = interval(GLANCE);
        glance.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while watched.note.cpu_time(&self.warden.counters()) < limit {
            glance.tick().await;
        }
        // On its own: the process itself may end before all its descendants have.
        tokio::spawn(Arc::clone(self).end(Arc::clone(watched), Asked::CpuTime));
        pending().await
    }

    async fn judge(&self, watched: &Watched, ended: &Ended) -> Outcome {
        let mut evidence = self.evidence(watched);
        evidence.disk_full = self.limits.disk.is_some() && self.disk_is_full().await;
        let mut outcome = evidence.judge(ended);
        outcome.sandbox_survived = !self.ended.is_cancelled();
        outcome
    }

    fn evidence<'a>(&self, watched: &'a Watched) -> Evidence<'a> {
        Evidence {
            before: &watched.note,
            now: self.warden.counters(),
            elapsed: watched.note.elapsed(),
            asked: watched.asked(),
            disk_full: false,
        }
    }

    /// Less than a hundredth is left.
    async fn disk_is_full(&self) -> bool {
        match self.disk().await {
            Ok(disk) => disk.total > 0 && disk.total - disk.used <= disk.total / 100,
            Err(_) => false,
        }
    }
}
