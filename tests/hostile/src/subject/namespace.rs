//! The `namespace` engine, as root.

use std::{fs, path::Path, sync::Arc};

use anyhow::Result;
use atoll_engine::{Engine, SandboxId};
use atoll_namespace::{Config, NamespaceEngine};
use tempfile::TempDir;

use super::{Subject, Weakness};

/// Engines of one directory.
#[derive(Debug)]
pub struct Namespace {
    state: TempDir,
}

impl Namespace {
    pub fn new() -> Result<Self> {
        Ok(Self { state: tempfile::Builder::new().prefix("atoll-hostile-").tempdir()? })
    }

    /// Why the engine itself says that it does not work here.
    pub(super) fn probed(&self) -> Option<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let engine = NamespaceEngine::new(Config::new(self.state.path()));
        runtime.block_on(engine.probe()).err().map(|error| error.to_string())
    }
}

impl Subject for Namespace {
    fn name(&self) -> &'static str {
        "namespace"
    }

    fn missing(&self) -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("the namespace engine needs root here".to_owned());
        }
        self.probed()
    }

    fn engine(&self, directory: &Path, weaknesses: &[Weakness]) -> Result<Arc<dyn Engine>> {
        let weaknesses = weaknesses.iter().copied().map(own).collect::<Result<_>>()?;
        let config = Config { weaknesses, ..Config::new(directory) };
        Ok(Arc::new(NamespaceEngine::new(config)))
    }

    fn directory(&self) -> &Path {
        self.state.path()
    }

    /// As the engine wrote it down.
    fn first_process(&self, id: &SandboxId) -> Option<u64> {
        let record = fs::read(self.state.path().join(id.as_str()).join("record.json")).ok()?;
        let record: serde_json::Value = serde_json::from_slice(&record).ok()?;
        record["init"]["pid"].as_u64()
    }
}

/// The engine's own name of a weakness.
fn own(weakness: Weakness) -> Result<atoll_namespace::Weakness> {
    Ok(match weakness {
        Weakness::Seccomp => atoll_namespace::Weakness::Seccomp,
        Weakness::Landlock => atoll_namespace::Weakness::Landlock,
        Weakness::NestedUsers => atoll_namespace::Weakness::NestedUsers,
        Weakness::Proc => atoll_namespace::Weakness::Proc,
        Weakness::Root => atoll_namespace::Weakness::Root,
        Weakness::Network => atoll_namespace::Weakness::Network,
        other => anyhow::bail!("this engine has no such wall: {other:?}"),
    })
}
