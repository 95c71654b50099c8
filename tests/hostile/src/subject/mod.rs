//! What the tier runs on: an engine, what is known of it from outside, and what cannot be asked
//! of it.

mod exception;
mod namespace;
mod ordinary;

use std::{fmt, path::Path, sync::Arc};

use anyhow::Result;
use atoll_engine::{Engine, SandboxId, Spec};

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

    /// What is left of a sandbox where only this engine would leave it.
    fn left(&self, _id: &SandboxId) -> Vec<String> {
        Vec::new()
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
}
