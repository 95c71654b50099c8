//! What the tier runs on: an engine, what is known of it from outside, and what cannot be asked
//! of it.

mod docker;
mod exception;
mod namespace;
mod ordinary;

use std::{fmt, path::Path, sync::Arc};

use anyhow::Result;
use atoll_engine::{Engine, Root, SandboxId, Spec};
use serde_json::Value;

pub use docker::Docker;
pub use exception::Exceptions;
pub use namespace::Namespace;
pub use ordinary::Ordinary;

/// An engine under test, and the host's view of its sandboxes.
pub trait Subject: fmt::Debug + Send + Sync {
    /// The word before the names of its snapshots and of its list of exceptions.
    fn name(&self) -> &'static str;

    /// Why this host cannot run it; none if it can.
    fn missing(&self) -> Option<String>;

    /// The engine, with its own files in this directory, open in these ways. Engines of one
    /// directory have the same sandboxes; those of another know nothing of them.
    ///
    /// An error if the engine has no such wall to leave out.
    fn engine(&self, directory: &Path, weaknesses: &[Weakness]) -> Result<Arc<dyn Engine>>;

    /// The directory of the engines that checks share.
    fn directory(&self) -> &Path;

    /// What every sandbox of this engine needs besides what a check asks for.
    fn complete(&self, spec: Spec) -> Spec {
        spec
    }

    /// What a server needs to be told to use this engine.
    fn settings(&self, settings: atoll_service::Settings) -> atoll_service::Settings {
        settings
    }

    /// The host's number of a sandbox's first process.
    fn first_process(&self, id: &SandboxId) -> Option<u64>;

    /// Guest processes and threads as this program counts them, where the engine cannot.
    fn guests(&self, _id: &SandboxId) -> Option<u64> {
        None
    }

    /// How many processes more than allowed a sandbox may have, where they cannot be counted.
    fn slack(&self) -> u64 {
        0
    }

    /// Names of the sandbox in the host's control groups and mount table.
    fn names(&self, id: &SandboxId) -> Vec<String> {
        vec![id.to_string()]
    }

    /// What is left of a sandbox with these names where only this engine would leave it.
    fn left(&self, _names: &[String]) -> Vec<String> {
        Vec::new()
    }

    /// Whether guests can read in their mount table where the engine's directory is.
    fn tells_its_directory(&self) -> bool {
        false
    }

    /// What the engine's own daemon tells of a sandbox, if there is such a daemon.
    fn inspect(&self, _id: &SandboxId) -> Option<Value> {
        None
    }

    /// An image with these lines of a Dockerfile, for engines that know images.
    fn image(&self, _lines: &[&str]) -> Result<Root> {
        anyhow::bail!("this engine knows no images")
    }
}

/// A wall left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weakness {
    /// No system call is refused.
    Seccomp,
    /// No place is refused by Landlock.
    Landlock,
    /// User namespaces may be nested.
    NestedUsers,
    /// The kernel's own files in `/proc` can be seen and written as far as ids allow.
    Proc,
    /// Guests are the agent's user, with its capabilities.
    Root,
    /// A container has every capability.
    Capabilities,
    /// Privileges can be gained in a container.
    NewPrivileges,
    /// A container's root can be written.
    WritableRoot,
    /// The host's network.
    Network,
    /// Volumes that an image declares are made.
    ImageVolumes,
}
