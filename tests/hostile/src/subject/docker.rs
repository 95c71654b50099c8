//! The `docker` engine, on a daemon of the tests' own.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use atoll_docker::{Config, DockerEngine};
use atoll_engine::{Engine, Image, Root, SandboxId, Spec};
use atoll_test_dockerd::Dockerd;
use serde_json::Value;
use tempfile::TempDir;

use super::{Subject, Weakness};

/// A daemon, and engines that use it.
#[derive(Debug)]
pub struct Docker {
    daemon: Dockerd,
    state: TempDir,
    /// An environment for servers, whose root is the image of tests.
    environments: TempDir,
}

impl Docker {
    pub fn new() -> Result<Self> {
        let daemon = Dockerd::start().map_err(|missing| anyhow::anyhow!("{missing}"))?;
        let environments = tempfile::Builder::new().prefix("atoll-hostile-").tempdir()?;
        let described = format!("description: a test's\nroots: {{docker: {}}}\n", daemon.image());
        std::fs::write(environments.path().join("hostile.yaml"), described)?;
        let state = tempfile::Builder::new().prefix("atoll-hostile-").tempdir()?;
        Ok(Self { daemon, state, environments })
    }

    fn container(&self, id: &SandboxId) -> Option<String> {
        let end = format!("-{id}");
        let names = self.daemon.containers().into_iter();
        let mut own = names.filter(|name| name.ends_with(&end));
        own.next().map(|name| name.trim_start_matches('/').to_owned())
    }
}

impl Subject for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn missing(&self) -> Option<String> {
        None
    }

    fn engine(&self, directory: &Path, weaknesses: &[Weakness]) -> Result<Arc<dyn Engine>> {
        let weaknesses = weaknesses.iter().copied().filter_map(own).collect();
        let config = Config { host: self.daemon.host(), weaknesses, ..Config::new(directory) };
        Ok(Arc::new(DockerEngine::new(config)))
    }

    fn directory(&self) -> &Path {
        self.state.path()
    }

    fn complete(&self, spec: Spec) -> Spec {
        match spec.root {
            Root::Image(_) => spec,
            _ => {
                Spec { root: Root::Image(Image::Reference(self.daemon.image().to_owned())), ..spec }
            }
        }
    }

    fn settings(&self, settings: atoll_service::Settings) -> atoll_service::Settings {
        atoll_service::Settings {
            environments: Some(self.environments.path().to_owned()),
            default_environment: "hostile".to_owned(),
            ..settings
        }
    }

    fn first_process(&self, id: &SandboxId) -> Option<u64> {
        self.inspect(id)?["State"]["Pid"].as_u64().filter(|pid| *pid > 0)
    }

    /// The container's own name, and those of volumes it may have.
    fn names(&self, id: &SandboxId) -> Vec<String> {
        let told = self.inspect(id).unwrap_or_default();
        let mounts = told["Mounts"].as_array().cloned().unwrap_or_default();
        let volumes = mounts.iter().filter_map(|mount| mount["Name"].as_str());
        let names = volumes.chain(told["Id"].as_str()).map(str::to_owned);
        names.chain([id.to_string()]).collect()
    }

    /// What the engine allows for its agent, which is in the guests' control group.
    fn slack(&self) -> u64 {
        32
    }

    /// What is shown of it, such as the agent, has its path in the container's mount table.
    fn tells_its_directory(&self) -> bool {
        true
    }

    fn left(&self, names: &[String]) -> Vec<String> {
        let is_its = |name: &String| names.iter().any(|its| name.contains(its));
        let containers = self.daemon.containers().into_iter().filter(is_its);
        let volumes = self.daemon.volumes().into_iter().filter(is_its);
        let containers = containers.map(|name| format!("container {name}"));
        containers.chain(volumes.map(|name| format!("volume {name}"))).collect()
    }

    fn inspect(&self, id: &SandboxId) -> Option<Value> {
        Some(self.daemon.inspect(&self.container(id)?))
    }

    fn image(&self, lines: &[&str]) -> Result<Root> {
        let name = format!("hostile-{}:latest", crate::canary::token().context("a name")?);
        self.daemon.change(&name, lines);
        Ok(Root::Image(Image::Reference(name)))
    }
}

/// The engine's own name of a weakness; none for a wall that this engine does not have.
fn own(weakness: Weakness) -> Option<atoll_docker::Weakness> {
    Some(match weakness {
        Weakness::Seccomp => atoll_docker::Weakness::Seccomp,
        Weakness::Proc => atoll_docker::Weakness::Proc,
        Weakness::Root => atoll_docker::Weakness::Root,
        Weakness::Capabilities => atoll_docker::Weakness::Capabilities,
        Weakness::NewPrivileges => atoll_docker::Weakness::NewPrivileges,
        Weakness::WritableRoot => atoll_docker::Weakness::WritableRoot,
        Weakness::Network => atoll_docker::Weakness::Network,
        Weakness::ImageVolumes => atoll_docker::Weakness::ImageVolumes,
        Weakness::Landlock | Weakness::NestedUsers => return None,
    })
}
