//! Executions: one run of code, a command or a file, from request to recorded result.
//!
//! The row is there before anything runs, and its result is written once. An execution runs in a
//! task of its own: a caller that goes away cancels it (the program and its descendants are
//! killed, and the result says `cancelled`); a server that stops lets it go on in its session, for
//! the next server to find.

mod once;
mod plan;
mod result;
mod run;

use atoll_store::{Execution, ExecutionState};
use atoll_types::{
    execution::{ExecuteRequest, ExecutionResult},
    id::SessionId,
};
use tokio_util::sync::CancellationToken;

pub(crate) use plan::{Place, Plan, Wanted};
pub(crate) use result::Facts;
pub(crate) use run::missing;

use crate::{Error, Result, Service, clock, id, live::Live};

impl Service {
    /// Runs something in a session and waits for its end.
    ///
    /// Whatever the program does is a result; an error means that it never ran. Dropping the
    /// future kills the program and its descendants.
    pub async fn execute(
        &self,
        id: &SessionId,
        request: ExecuteRequest,
    ) -> Result<ExecutionResult> {
        let live = self.live(id).await?;
        let held = live.hold();
        let plan = self.plan(&request, live.place())?;
        let scratch = plan.scratch.clone();
        let dropped = CancellationToken::new();
        let _guard = dropped.clone().drop_guard();
        let service = self.background();
        let task = self.inner.tasks.spawn(async move {
            let _held = held;
            let stop = service.inner.stop.clone();
            tokio::select! {
                result = service.run(&live, plan, &dropped) => {
                    service.tidy(&live, scratch);
                    result
                }
                () = stop.cancelled() => Err(Error::internal("the server is stopping")
                    .hint("what ran goes on in its session")),
            }
        });
        task.await.map_err(|error| Error::internal("the execution broke off").because(error))?
    }

    /// Writes down what is about to run.
    async fn begin(&self, live: &Live, plan: &Plan) -> Result<()> {
        let execution = Execution {
            id: plan.id.clone(),
            session: live.id.clone(),
            sandbox: live.sandbox_id.clone(),
            summary: plan.summary.clone(),
            state: ExecutionState::Running,
            process: None,
            created: clock::now(),
            result: None,
        };
        Ok(self.inner.store.begin_execution(&execution).await?)
    }

    /// Writes down how it ended. The first one to do so is believed.
    pub(crate) async fn record(&self, result: &ExecutionResult) -> Result<()> {
        let value = result::shortened(result)?;
        let (state, now) = (ExecutionState::Ended, clock::now());
        if self.inner.store.end_execution(&result.id, state, &value, now).await? {
            crate::metrics::execution_ended(result.reason, result.duration.0);
        }
        Ok(())
    }

    /// Writes down that it never ran, and why.
    async fn refuse(&self, id: &str, error: &Error) {
        let value = serde_json::json!({ "code": error.code.as_str(), "message": error.message });
        let (state, now) = (ExecutionState::Refused, clock::now());
        if let Err(error) = self.inner.store.end_execution(id, state, &value, now).await {
            tracing::error!(execution = id, %error, "refusal not written down");
        }
    }

    fn plan(&self, request: &ExecuteRequest, place: Place<'_>) -> Result<Plan> {
        let settings = &self.inner.settings;
        let timeout = match request.timeout {
            Some(asked) => {
                crate::limits::span("timeout", asked, Some(settings.max_execution_timeout))?
            }
            None => settings.execution_timeout.min(settings.max_execution_timeout),
        };
        let id = id::execution();
        let wanted = Wanted::of(request);
        Plan::new(id, wanted, Some(timeout), request.stdin.clone(), place)
    }
}
