//! Making a session: the row first, then the sandbox.

use std::{sync::Arc, time::Instant};

use atoll_store::{SessionRecord, Transition};
use atoll_types::{
    id::SessionId,
    session::{CreateSession, End, Session, State},
};
use tokio::sync::oneshot;

use super::{Made, Wish, deadline, show};
use crate::{
    Error, LifecycleEvent, Result, Service, after, clock, id, limits, live::Live, metrics,
};

impl Service {
    /// Makes a session that is ready when this returns.
    ///
    /// A failure leaves a `failed` row that says so and nothing else. If the caller goes away, the
    /// session is finished and then deleted.
    pub async fn create_session(&self, request: CreateSession) -> Result<Session> {
        check_metadata(&request)?;
        let most = self.inner.settings.max_session_timeout;
        let lifetime = match request.timeout {
            Some(timeout) => limits::span("timeout", timeout, Some(most))?,
            None => self.inner.settings.session_timeout.min(most),
        };
        let made = self
            .grant(Wish {
                environment: request.environment,
                engine: request.engine,
                env: request.env,
                limits: request.limits.unwrap_or_default(),
                mounts: request.mounts,
                trusted: request.trusted,
            })
            .await?;
        let now = clock::now();
        let record = SessionRecord {
            id: id::session(),
            sandbox: made.sandbox_id.clone(),
            engine: made.engine.name().to_owned(),
            environment: made.environment.name.clone(),
            state: State::Creating,
            end: None,
            created: now,
            expires: deadline(lifetime)?,
            last_activity: now,
            spec: serde_json::to_value(&made.kept).map_err(|error| {
                Error::internal("the session cannot be written down").because(error)
            })?,
            metadata: request.metadata,
        };
        let (answer, wait) = oneshot::channel();
        let service = self.background();
        self.inner.tasks.spawn(async move {
            let session = service.make_session(made, record).await;
            if let Err(Ok(unwanted)) = answer.send(session) {
                let ended = service.end_session(&unwanted.session_id, End::Deleted).await;
                tracing::debug!(session = %unwanted.session_id, ?ended, "its maker went away");
            }
        });
        wait.await.map_err(|_| Error::internal("making the session broke off"))?
    }

    async fn make_session(&self, made: Made, record: SessionRecord) -> Result<Session> {
        let began = Instant::now();
        self.inner.store.insert_session(&record).await?;
        let sandbox = match made.create().await {
            Ok(sandbox) => sandbox,
            Err(error) => {
                self.note_failed(&record.id).await;
                return Err(error);
            }
        };
        let event = |state| after(state, LifecycleEvent::Created);
        let record = match self.inner.store.advance(&record.id, None, event).await {
            Ok(Transition::Done(record)) => *record,
            other => {
                // Without its row nobody would ever end it.
                let destroyed = made.engine.destroy(&made.sandbox_id).await;
                tracing::error!(session = %record.id, ?other, ?destroyed, "no row for a sandbox");
                return Err(Error::internal("the session could not be written down"));
            }
        };
        metrics::session_created(made.engine.name(), began.elapsed());
        let live = Live::new(
            record.id.clone(),
            made.sandbox_id,
            made.engine,
            sandbox,
            made.environment,
            made.kept.limits,
            record.expires,
            made.permit,
        );
        self.keep(&live);
        tracing::debug!(session = %record.id, sandbox = %record.sandbox, "session ready");
        Ok(show(record))
    }

    /// Takes a session in hand: others find it, and its sandbox is watched.
    pub(crate) fn keep(&self, live: &Arc<Live>) {
        self.insert_live(Arc::clone(live));
        let service = self.background();
        let id = live.id.clone();
        let sandbox = Arc::clone(&live.sandbox);
        self.inner.tasks.spawn(async move {
            tokio::select! {
                () = service.inner.stop.cancelled() => {}
                () = sandbox.ended() => service.lose_session(&id).await,
            }
        });
    }

    async fn note_failed(&self, id: &SessionId) {
        let event = |state| after(state, LifecycleEvent::Broke);
        match self.inner.store.advance(id, Some(End::CreateFailed), event).await {
            Ok(_) => metrics::session_ended(End::CreateFailed),
            Err(error) => tracing::error!(session = %id, %error, "failure not written down"),
        }
    }
}

fn check_metadata(request: &CreateSession) -> Result<()> {
    if request.metadata.len() > 64 {
        return Err(Error::invalid("`metadata`: at most 64 entries"));
    }
    for (key, value) in &request.metadata {
        if key.is_empty() || key.len() > 128 || value.len() > 4096 {
            return Err(Error::invalid(
                "`metadata`: a key is 1 to 128 bytes long, a value at most 4096",
            ));
        }
    }
    Ok(())
}
