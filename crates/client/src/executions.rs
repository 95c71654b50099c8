//! Running something to its end.

use atoll_types::{
    execution::{ExecuteRequest, ExecutionResult, OneShotRequest},
    id::SessionId,
};

use crate::{Client, error::Result, sessions::at};

impl Client {
    /// Runs something in a session. Dropping the future ends it.
    pub async fn execute(
        &self,
        id: &SessionId,
        request: &ExecuteRequest,
    ) -> Result<ExecutionResult> {
        self.post(&at(id, "/execute"), request).await
    }

    /// Runs something in a fresh sandbox that is gone after. Dropping the future ends it.
    pub async fn execute_once(&self, request: &OneShotRequest) -> Result<ExecutionResult> {
        self.post("/api/execute/sync", request).await
    }
}
