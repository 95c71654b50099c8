//! Ending a session: the intent first, then the sandbox, then the row.

use atoll_store::{SessionRecord, Transition};
use atoll_types::{
    id::{SandboxId, SessionId},
    session::{End, State},
};
use tokio::sync::oneshot;

use super::unknown;
use crate::{Code, Error, LifecycleEvent, Refused, Result, Service, after, metrics};

impl Service {
    /// Ends a session and removes its sandbox; returns when nothing is left of it.
    ///
    /// One that has ended is not found, whatever `sandbox` says. With `sandbox`, only if that is its
    /// sandbox. Goes on if the caller goes away.
    pub async fn delete_session(&self, id: &SessionId, sandbox: Option<&SandboxId>) -> Result<()> {
        let record = self.inner.store.session(id).await?.ok_or_else(|| unknown(id))?;
        let over = matches!(record.state, State::Gone | State::Failed | State::Lost);
        if !over && sandbox.is_some_and(|sandbox| *sandbox != record.sandbox) {
            let message = format!("session `{id}` has another sandbox");
            return Err(Error::new(Code::Conflict, message));
        }
        let (answer, wait) = oneshot::channel();
        let (service, id) = (self.background(), id.clone());
        self.inner.tasks.spawn(async move {
            // Whether anyone still waits does not matter.
            let _ = answer.send(service.end_session(&id, End::Deleted).await);
        });
        wait.await.map_err(|_| Error::internal("ending the session broke off"))?
    }

    /// Ends a session for that reason.
    pub(crate) async fn end_session(&self, id: &SessionId, end: End) -> Result<()> {
        let event = |state| after(state, LifecycleEvent::Destroy);
        match self.inner.store.advance(id, Some(end), event).await? {
            Transition::Done(record) => {
                self.remove_live(id);
                self.destroy(*record).await
            }
            Transition::Missing => Err(unknown(id)),
            Transition::Refused(Refused { state: State::Destroying, .. }) => {
                Err(Error::not_found(format!("session `{id}` is being removed already")))
            }
            Transition::Refused(_) => Err(self.absent(id).await),
        }
    }

    /// Finishes what a row marked `destroying` says. A failure is tried again by the reaper.
    pub(crate) async fn destroy(&self, record: SessionRecord) -> Result<()> {
        self.remove_sandbox(&record.engine, &record.sandbox, Some(&record.id)).await?;
        metrics::session_ended(record.end.unwrap_or(End::Deleted));
        tracing::debug!(session = %record.id, end = ?record.end, "session ended");
        Ok(())
    }

    /// Removes a sandbox, and marks its session gone; what fails is tried again by the reaper.
    pub(crate) async fn remove_sandbox(
        &self,
        engine: &str,
        sandbox: &SandboxId,
        session: Option<&SessionId>,
    ) -> Result<()> {
        let removed = async {
            self.inner.engines.find(engine)?.destroy(sandbox).await?;
            if let Some(session) = session {
                let event = |state| after(state, LifecycleEvent::Destroyed);
                self.inner.store.advance(session, None, event).await?;
            }
            Ok(())
        }
        .await;
        let mut undone = self.undone();
        match &removed {
            Ok(()) => undone.remove(sandbox),
            Err(_) => undone.insert(sandbox.clone(), (engine.to_owned(), session.cloned())),
        };
        removed
    }

    /// Notes that a session's sandbox went away by itself, and clears up after it.
    pub(crate) async fn lose_session(&self, id: &SessionId) {
        let event = |state| after(state, LifecycleEvent::Broke);
        match self.inner.store.advance(id, Some(End::SandboxLost), event).await {
            // Someone is ending it: then its sandbox is meant to go away.
            Ok(Transition::Refused(_) | Transition::Missing) => {}
            Ok(Transition::Done(record)) => {
                self.remove_live(id);
                metrics::session_ended(End::SandboxLost);
                tracing::warn!(session = %id, sandbox = %record.sandbox, "sandbox lost");
                self.clear_up(&record).await;
            }
            Err(error) => tracing::error!(session = %id, %error, "loss not written down"),
        }
    }

    /// Removes what may remain of a sandbox whose session is over.
    pub(crate) async fn clear_up(&self, record: &SessionRecord) {
        let Ok(engine) = self.inner.engines.find(&record.engine) else { return };
        if let Err(error) = engine.destroy(&record.sandbox).await {
            tracing::warn!(sandbox = %record.sandbox, %error, "remains of a sandbox not removed");
        }
    }
}
