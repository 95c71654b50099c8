//! The server itself: what it is, what it has, and who may use it.

use atoll_types::{
    engine::{EngineInfo, EngineList},
    key::{CreateKey, Key, KeyList, NewKey},
    server::{Health, Version},
};
use hyper::{Method, header::HeaderMap};

use crate::{Client, body, error::Result, query};

impl Client {
    /// Whether anyone is there; needs no key.
    pub async fn health(&self) -> Result<Health> {
        self.get("/healthz").await
    }

    pub async fn version(&self) -> Result<Version> {
        self.get("/api/version").await
    }

    pub async fn engines(&self) -> Result<Vec<EngineInfo>> {
        self.get("/api/engines").await.map(|EngineList { engines }| engines)
    }

    /// Makes a key; its secret is shown this once. Needs the `admin` scope, as the two below.
    pub async fn create_key(&self, request: &CreateKey) -> Result<NewKey> {
        self.post("/api/keys", request).await
    }

    pub async fn keys(&self) -> Result<Vec<Key>> {
        self.get("/api/keys").await.map(|KeyList { keys }| keys)
    }

    pub async fn remove_key(&self, id: &str) -> Result<()> {
        self.delete(&format!("/api/keys/{}", query::part(id))).await
    }

    /// The server's own figures, as Prometheus reads them.
    pub async fn server_metrics(&self) -> Result<String> {
        self.text("/metrics").await
    }

    /// The description of the API.
    pub async fn openapi(&self) -> Result<String> {
        self.text("/openapi.json").await
    }

    async fn text(&self, target: &str) -> Result<String> {
        let answer = self.send(Method::GET, target, HeaderMap::new(), body::empty()).await?;
        body::text(answer).await
    }
}
