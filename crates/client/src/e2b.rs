//! The short forms under `/api/e2b`.

use atoll_types::{
    e2b::{Execute, WriteFile},
    execution::ExecutionResult,
    file::Listing,
    id::SessionId,
};
use hyper::{Method, header::HeaderMap};

use crate::{Client, body, error::Result, files::Download, query};

impl Client {
    pub async fn e2b_execute(&self, request: &Execute) -> Result<ExecutionResult> {
        self.post("/api/e2b/execute", request).await
    }

    pub async fn e2b_read_file(&self, id: &SessionId, path: &str) -> Result<Download> {
        let pairs = [("session_id", id.as_str()), ("path", path)];
        let target = query::with("/api/e2b/files", pairs);
        let answer = self.send(Method::GET, &target, HeaderMap::new(), body::empty()).await?;
        Ok(Download(answer.into_body()))
    }

    pub async fn e2b_write_file(&self, request: &WriteFile) -> Result<()> {
        self.tell("/api/e2b/files", request).await
    }

    pub async fn e2b_list_files(&self, id: &SessionId, path: Option<&str>) -> Result<Listing> {
        let pairs = path.map(|path| ("path", path));
        self.get(&query::with(&format!("/api/e2b/files/{id}"), pairs)).await
    }
}
