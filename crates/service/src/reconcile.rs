//! At the start, what the records say and what engines have are brought together.

use std::{collections::HashSet, sync::Arc};

use atoll_engine::{ErrorKind, Sandbox};
use atoll_store::{Execution, SessionRecord};
use atoll_types::{
    id::{SandboxId, SessionId},
    session::{End, State},
};
use futures_util::{StreamExt as _, stream};

use crate::{
    LifecycleEvent, Result, Service, after, clock,
    executions::Facts,
    live::Live,
    metrics,
    sessions::{Kept, show},
};

/// How many sandboxes are looked for at a time.
const ABREAST: usize = 8;

/// What was found at the start, and what was done about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Sessions whose sandboxes live: they go on.
    pub adopted: Vec<SessionId>,
    /// Sessions whose sandboxes were gone.
    pub lost: Vec<SessionId>,
    /// Sessions that were to end, or whose deadline had come: ended now.
    pub ended: Vec<SessionId>,
    /// Sessions that were being made when the server went away: undone.
    pub failed: Vec<SessionId>,
    /// Sessions whose engine does not answer: left as they are, and tried again later.
    pub unreachable: Vec<SessionId>,
    /// Sandboxes without a session: removed.
    pub orphans: Vec<SandboxId>,
    /// Executions that still run: their results will be recorded.
    pub followed: Vec<String>,
    /// Executions that nobody saw the end of: recorded as lost.
    pub lost_executions: Vec<String>,
}

/// What became of one session.
enum Fate {
    Adopted(Arc<Live>),
    Lost,
    Ended,
    Failed,
    Unreachable,
}

impl Reconciled {
    pub(crate) fn log(&self) {
        let counts = [
            ("adopted", self.adopted.len()),
            ("lost", self.lost.len()),
            ("ended", self.ended.len()),
            ("failed", self.failed.len()),
            ("unreachable", self.unreachable.len()),
            ("orphans", self.orphans.len()),
            ("followed", self.followed.len()),
            ("lost_executions", self.lost_executions.len()),
        ];
        for (what, count) in counts {
            metrics::reconciled(what, count);
        }
        if *self == Self::default() {
            return;
        }
        let Self { adopted, lost, ended, failed, unreachable, orphans, followed, .. } = self;
        let lost_executions = &self.lost_executions;
        tracing::info!(
            ?adopted,
            ?lost,
            ?ended,
            ?failed,
            ?unreachable,
            ?orphans,
            ?followed,
            ?lost_executions,
            "reconciled"
        );
    }
}

impl Service {
    /// Brings everything together, once, before anyone is served.
    pub(crate) async fn reconcile(&self) -> Result<Reconciled> {
        let records = self.inner.store.open_sessions().await?;
        let executions = self.inner.store.running_executions().await?;
        let known: HashSet<_> = records.iter().map(|record| record.sandbox.clone()).collect();
        let mut report = self.bring_together(records, executions).await?;
        report.orphans = self.remove_orphans(&known).await;
        Ok(report)
    }

    /// Tries again to reach the sessions that could not be reached.
    pub(crate) async fn reach_again(&self) -> Result<()> {
        let ids = std::mem::take(&mut *self.unreachable());
        if ids.is_empty() {
            return Ok(());
        }
        let mut records = self.inner.store.open_sessions().await?;
        records.retain(|record| ids.contains(&record.id));
        let mut executions = self.inner.store.running_executions().await?;
        executions.retain(|execution| ids.contains(&execution.session));
        let report = self.bring_together(records, executions).await?;
        if report.unreachable.len() < ids.len() {
            report.log();
        }
        Ok(())
    }

    async fn bring_together(
        &self,
        records: Vec<SessionRecord>,
        executions: Vec<Execution>,
    ) -> Result<Reconciled> {
        let fates: Vec<_> = stream::iter(records)
            .map(|record| async move { (record.id.clone(), self.settle(record).await) })
            .buffer_unordered(ABREAST)
            .collect()
            .await;
        let mut report = Reconciled::default();
        let mut adopted = Vec::new();
        for (id, fate) in fates {
            match fate? {
                Fate::Adopted(live) => {
                    report.adopted.push(id);
                    adopted.push(live);
                }
                Fate::Lost => report.lost.push(id),
                Fate::Ended => report.ended.push(id),
                Fate::Failed => report.failed.push(id),
                Fate::Unreachable => report.unreachable.push(id),
            }
        }
        for execution in executions {
            if report.unreachable.contains(&execution.session) {
                continue;
            }
            let live = adopted.iter().find(|live| live.id == execution.session);
            let id = execution.id.clone();
            if self.find_again(live, execution).await? {
                report.followed.push(id);
            } else {
                report.lost_executions.push(id);
            }
        }
        // Watched only now: one that died meanwhile is seen to be dead at once.
        for live in &adopted {
            self.keep(live);
        }
        self.unreachable().extend(report.unreachable.iter().cloned());
        Ok(report)
    }

    async fn settle(&self, record: SessionRecord) -> Result<Fate> {
        let id = &record.id;
        if record.state == State::Creating {
            self.clear_up(&record).await;
            let event = |state| after(state, LifecycleEvent::Broke);
            self.inner.store.advance(id, Some(End::ServerStopped), event).await?;
            return Ok(Fate::Failed);
        }
        let Ok(engine) = self.inner.engines.find(&record.engine) else {
            return Ok(Fate::Unreachable);
        };
        if record.state == State::Destroying {
            return Ok(ended(self.destroy(record).await));
        }
        if record.expires <= clock::now() {
            return Ok(ended(self.end_session(id, End::Expired).await));
        }
        match engine.attach(&record.sandbox).await {
            Ok(Some(sandbox)) => Ok(self.adopt(record, sandbox)?),
            Ok(None) => {
                let event = |state| after(state, LifecycleEvent::Broke);
                self.inner.store.advance(id, Some(End::SandboxLost), event).await?;
                metrics::session_ended(End::SandboxLost);
                self.clear_up(&record).await;
                Ok(Fate::Lost)
            }
            Err(error) => {
                tracing::warn!(session = %id, %error, "sandbox cannot be reached");
                Ok(Fate::Unreachable)
            }
        }
    }

    fn adopt(&self, record: SessionRecord, sandbox: Arc<dyn Sandbox>) -> Result<Fate> {
        let engine = Arc::clone(self.inner.engines.find(&record.engine)?);
        // An environment may have been removed since; its sandbox goes on with the usual tables.
        let environments = &self.inner.environments;
        let environment = environments
            .find(&record.environment)
            .or_else(|_| environments.find("base"))
            .map(Arc::clone)?;
        let kept: Kept = serde_json::from_value(record.spec.clone()).unwrap_or_default();
        let permit = Arc::clone(&self.inner.places).try_acquire_owned().ok();
        let expires = record.expires;
        let session = show(record);
        Ok(Fate::Adopted(Live::new(
            session.session_id,
            session.sandbox_id,
            engine,
            sandbox,
            environment,
            kept.limits,
            expires,
            permit,
        )))
    }

    /// Removes sandboxes that no session names: one-shots cut short, and remains.
    async fn remove_orphans(&self, known: &HashSet<SandboxId>) -> Vec<SandboxId> {
        let mut removed = Vec::new();
        for engine in self.inner.engines.iter() {
            let sandboxes = match engine.list().await {
                Ok(sandboxes) => sandboxes,
                // An engine that does not work here has none.
                Err(error) if error.kind() == ErrorKind::Unavailable => continue,
                Err(error) => {
                    tracing::warn!(engine = engine.name(), %error, "sandboxes cannot be listed");
                    continue;
                }
            };
            for sandbox in sandboxes.into_iter().filter(|id| !known.contains(id)) {
                match self.remove_sandbox(engine.name(), &sandbox, None).await {
                    Ok(()) => removed.push(sandbox),
                    Err(error) => tracing::warn!(%sandbox, %error, "orphan not removed yet"),
                }
            }
        }
        removed
    }

    /// Follows an execution whose process is still known, to its result; false, and it is recorded
    /// as lost, if there is none.
    async fn find_again(&self, live: Option<&Arc<Live>>, execution: Execution) -> Result<bool> {
        if let (Some(live), Some(process)) = (live, execution.process) {
            let processes = live.sandbox.processes().await.unwrap_or_default();
            if processes.iter().any(|one| one.id == process) {
                let (service, live) = (self.background(), Arc::clone(live));
                let held = live.hold();
                self.inner.tasks.spawn(async move {
                    let _held = held;
                    tokio::select! {
                        () = service.inner.stop.cancelled() => {}
                        () = service.resume(&live, &execution.id, process) => {}
                    }
                });
                return Ok(true);
            }
        }
        let result = Facts::lost().untold(&execution, live.is_some());
        self.record(&result).await?;
        Ok(false)
    }
}

/// A failure to end a session does not keep the server from starting: the reaper tries again.
fn ended(ended: Result<()>) -> Fate {
    match ended {
        Ok(()) => Fate::Ended,
        Err(error) => {
            tracing::warn!(%error, "session not ended yet");
            Fate::Unreachable
        }
    }
}
