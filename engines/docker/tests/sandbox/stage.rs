//! An engine with a directory of its own.

use std::sync::Arc;

use atoll_docker::{Config, DockerEngine, Weakness};
use atoll_engine::{Command, Engine as _, Image, Root, Sandbox, SandboxId, Spec};
use atoll_test_dockerd::{Dockerd, IMAGE};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Where one test happens.
pub(crate) struct Stage {
    pub(crate) daemon: Arc<Dockerd>,
    pub(crate) directory: TempDir,
}

impl Stage {
    pub(crate) fn new(daemon: Arc<Dockerd>) -> Self {
        let directory = tempfile::Builder::new().prefix("atoll-").tempdir().unwrap();
        Self { daemon, directory }
    }

    pub(crate) fn config(&self) -> Config {
        Config { host: self.daemon.host(), ..Config::new(self.directory.path().join("state")) }
    }

    pub(crate) fn engine(&self) -> DockerEngine {
        DockerEngine::new(self.config())
    }

    pub(crate) fn weak(&self, weaknesses: &[Weakness]) -> DockerEngine {
        DockerEngine::new(Config { weaknesses: weaknesses.to_vec(), ..self.config() })
    }

    /// What the daemon says of a sandbox's container.
    pub(crate) fn inspect(&self, id: &SandboxId) -> serde_json::Value {
        let ending = format!("-{id}");
        let name = self.daemon.containers().into_iter().find(|name| name.ends_with(&ending));
        self.daemon.inspect(name.expect("it has a container").trim_start_matches('/'))
    }
}

/// An id no other test uses.
pub(crate) fn fresh() -> SandboxId {
    format!("t-{:016x}", getrandom::u64().unwrap()).parse().unwrap()
}

pub(crate) fn of_image(name: &str) -> Spec {
    Spec { root: Root::Image(Image::Reference(name.to_owned())), ..Spec::default() }
}

pub(crate) fn spec() -> Spec {
    of_image(IMAGE)
}

/// A sandbox, gone when dropped.
pub(crate) struct Made<'a> {
    pub(crate) sandbox: Arc<dyn Sandbox>,
    engine: DockerEngine,
    runtime: &'a Runtime,
}

impl<'a> Made<'a> {
    pub(crate) fn new(engine: &DockerEngine, spec: &Spec, runtime: &'a Runtime) -> Self {
        let sandbox = runtime.block_on(engine.create(&fresh(), spec)).unwrap();
        Self { sandbox, engine: engine.clone(), runtime }
    }

    /// What a line of shell writes, whether or not it succeeds.
    pub(crate) fn sh(&self, line: &str) -> String {
        let running = atoll_engine::exec(&self.sandbox, Command::shell(line), None);
        let output = self.runtime.block_on(running).unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.engine.destroy(self.sandbox.id()));
    }
}
