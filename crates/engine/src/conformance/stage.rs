//! Where cases are performed: an engine, a directory, and the cleaning up after each.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tempfile::TempDir;
use tokio::{runtime::Handle, task::JoinHandle, time};

use super::{Failure, case::CaseResult};
use crate::{Engine, Isolation, Network, Result, Root, SandboxId, Spec};

type MakeEngine = Arc<dyn Fn(&Path) -> Arc<dyn Engine> + Send + Sync>;
type Census = Arc<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;

/// An engine to be tried.
#[derive(Clone)]
pub struct Subject {
    make: MakeEngine,
    pub(super) census: Option<Census>,
    pub(super) unsupported: &'static str,
    pub(super) deadline: Duration,
    root: Root,
}

/// What a case is given.
#[derive(Clone)]
pub struct Stage {
    subject: Subject,
    engine: Arc<dyn Engine>,
    directory: Arc<TempDir>,
    runtime: Handle,
    /// Sandboxes of the case being destroyed.
    leftovers: Arc<Mutex<Vec<JoinHandle<Result<()>>>>>,
}

impl Subject {
    /// `make` gives an engine that keeps its state in a directory, the same sandboxes each time it
    /// is called with the same one. `unsupported` names the cases it refuses, one to a line.
    pub fn new(
        make: impl Fn(&Path) -> Arc<dyn Engine> + Send + Sync + 'static,
        unsupported: &'static str,
    ) -> Self {
        Self {
            make: Arc::new(make),
            census: None,
            unsupported,
            deadline: Duration::from_secs(45),
            root: Spec::default().root,
        }
    }

    /// Adds a look, after all cases, at what only this engine knows it could leave.
    #[must_use]
    pub fn census(
        mut self,
        census: impl Fn(&Path) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.census = Some(Arc::new(census));
        self
    }

    /// What sandboxes start from, where that is not the host's own programs.
    #[must_use]
    pub fn root(mut self, root: Root) -> Self {
        self.root = root;
        self
    }

    /// Gives each case this long.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

impl Stage {
    /// A stage with a directory of its own.
    pub fn new(subject: Subject, runtime: Handle) -> std::io::Result<Self> {
        let directory = Arc::new(tempfile::Builder::new().prefix("atoll-").tempdir()?);
        std::fs::create_dir(directory.path().join("state"))?;
        let guard = runtime.enter();
        let engine = (subject.make)(&directory.path().join("state"));
        drop(guard);
        Ok(Self { subject, engine, directory, runtime, leftovers: Arc::default() })
    }

    pub(super) fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Another engine over the same state, as a restarted daemon has it.
    pub(super) fn another_engine(&self) -> Arc<dyn Engine> {
        (self.subject.make)(&self.state())
    }

    /// Where the engine keeps its state.
    pub(super) fn state(&self) -> std::path::PathBuf {
        self.directory.path().join("state")
    }

    /// A directory of the host for a case's own use.
    pub(super) fn host_directory(&self) -> std::io::Result<TempDir> {
        tempfile::Builder::new().prefix("host-").tempdir_in(self.directory.path())
    }

    /// What every case starts from: as little trust as the engine takes.
    pub(super) fn spec(&self) -> Spec {
        let spec = Spec { root: self.subject.root.clone(), ..Spec::default() };
        match self.engine.isolation() {
            Isolation::None => Spec { trusted: true, network: Network::Host, ..spec },
            Isolation::Kernel | Isolation::Machine => spec,
        }
    }

    /// Destroys a sandbox in the background; the case ends only when that is done.
    pub(super) fn leave(&self, id: SandboxId) {
        let engine = Arc::clone(&self.engine);
        let task = self.runtime.spawn(async move { engine.destroy(&id).await });
        self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    pub(super) fn perform(
        &self,
        body: &(dyn Fn(Self) -> BoxFuture<'static, CaseResult> + Send + Sync),
    ) -> CaseResult {
        let stage = Self { leftovers: Arc::default(), ..self.clone() };
        self.runtime.block_on(async {
            let mut task = tokio::spawn(body(stage.clone()));
            let result = match time::timeout(self.subject.deadline, &mut task).await {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => Err(Failure::Broken(panic.to_string())),
                Err(_) => {
                    task.abort();
                    // Only to have its sandboxes dropped.
                    let _ = task.await;
                    Err(Failure::Broken(format!("not done after {:?}", self.subject.deadline)))
                }
            };
            let cleaned = stage.clean().await;
            result.and(cleaned)
        })
    }

    async fn clean(&self) -> CaseResult {
        let tasks =
            std::mem::take(&mut *self.leftovers.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            match time::timeout(self.subject.deadline, task).await {
                Ok(Ok(result)) => result?,
                Ok(Err(panic)) => return Err(Failure::Broken(panic.to_string())),
                Err(_) => return Err(Failure::Broken("destroying does not end".into())),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("engine", &self.engine).finish_non_exhaustive()
    }
}
