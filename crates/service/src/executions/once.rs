//! One-shots: a fresh sandbox for one execution.
//!
//! The sandbox is destroyed before the answer is given: who has the answer knows that nothing is
//! left. It has no session row; should the server be killed meanwhile, the next one removes the
//! sandbox and records the execution as lost.

use std::collections::BTreeMap;

use atoll_types::execution::{ExecutionResult, OneShotRequest};

use crate::{
    Error, Result, Service, id,
    live::Live,
    sessions::{Wish, deadline},
};

impl Service {
    /// Runs something in a sandbox of its own, which is gone when this returns.
    ///
    /// Dropping the future kills the program and destroys the sandbox, in the background.
    pub async fn execute_once(&self, request: OneShotRequest) -> Result<ExecutionResult> {
        let made = self
            .grant(Wish {
                environment: request.environment.clone(),
                engine: request.engine.clone(),
                env: BTreeMap::new(),
                limits: request.limits.unwrap_or_default(),
                mounts: request.mounts.clone(),
                trusted: request.trusted,
            })
            .await?;
        let plan = self.plan(&request.execution(), made.place())?;
        let dropped = self.inner.stop.child_token();
        let _guard = dropped.clone().drop_guard();
        let service = self.background();
        let task = self.inner.tasks.spawn(async move {
            let sandbox = made.create().await?;
            let expires = deadline(service.inner.settings.max_execution_timeout)?;
            let live = Live::new(
                id::session(),
                made.sandbox_id,
                made.engine,
                sandbox,
                made.environment,
                made.kept.limits,
                expires,
                made.permit,
            );
            let result = service.run(&live, plan, &dropped).await;
            let id = &live.sandbox_id;
            if let Err(error) = service.remove_sandbox(live.engine.name(), id, None).await {
                tracing::error!(sandbox = %id, %error, "one-shot not destroyed yet");
            }
            result.map(|result| ExecutionResult { state_survived: false, ..result })
        });
        task.await.map_err(|error| Error::internal("the execution broke off").because(error))?
    }
}
