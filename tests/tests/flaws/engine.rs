//! An engine over a sound one, with one flaw.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use atoll_engine::{Engine, ErrorKind, Isolation, Limits, Probe, Result, Sandbox, SandboxId, Spec};

use crate::{flaw::Flaw, sandbox::FlawedSandbox};

#[derive(Debug)]
pub(crate) struct Flawed {
    inner: Arc<dyn Engine>,
    flaw: Flaw,
    directory: PathBuf,
}

impl Flawed {
    pub(crate) fn new(inner: Arc<dyn Engine>, flaw: Flaw, directory: &Path) -> Self {
        Self { inner, flaw, directory: directory.to_owned() }
    }

    fn wrap(&self, sandbox: Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
        Arc::new(FlawedSandbox::new(sandbox, self.flaw, self.directory.clone()))
    }
}

#[async_trait]
impl Engine for Flawed {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn isolation(&self) -> Isolation {
        self.inner.isolation()
    }

    async fn probe(&self) -> Result<Probe> {
        self.inner.probe().await
    }

    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        let mut spec = spec.clone();
        match self.flaw {
            Flaw::TrustsEverybody => spec.trusted = true,
            Flaw::IgnoresLimits => spec.limits = Limits::default(),
            _ => {}
        }
        match self.inner.create(id, &spec).await {
            Err(error)
                if self.flaw == Flaw::CreatesTwice && error.kind() == ErrorKind::AlreadyExists =>
            {
                let there = self.inner.attach(id).await?;
                there.map(|sandbox| self.wrap(sandbox)).ok_or(error)
            }
            other => other.map(|sandbox| self.wrap(sandbox)),
        }
    }

    async fn attach(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>> {
        Ok(self.inner.attach(id).await?.map(|sandbox| self.wrap(sandbox)))
    }

    async fn list(&self) -> Result<Vec<SandboxId>> {
        match self.flaw {
            Flaw::ListsNothing => Ok(Vec::new()),
            _ => self.inner.list().await,
        }
    }

    async fn destroy(&self, id: &SandboxId) -> Result<()> {
        match self.flaw {
            Flaw::LeavesEverything => Ok(()),
            _ => self.inner.destroy(id).await,
        }
    }
}
