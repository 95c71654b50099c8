//! What a sandbox is made of, with every choice made.

use std::{collections::BTreeMap, path::PathBuf};

use atoll_types::limits::Limits;

/// A description of one sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    pub root: Root,
    /// Variables of every process, beneath a command's own.
    pub env: BTreeMap<String, String>,
    /// What is not limited here is not limited.
    pub limits: Limits,
    pub mounts: Vec<Mount>,
    pub network: Network,
    /// The code to come is known and trusted.
    pub trusted: bool,
    /// What runs the sandbox, where an engine leaves that to another program: an OCI runtime.
    pub runtime: Option<String>,
}

/// The file system a sandbox starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// The host's own programs and libraries, read-only, from an allow-list, and these
    /// directories besides.
    Host { also: Vec<PathBuf> },
    /// A directory that holds a whole root file system; shared, never changed.
    Directory(PathBuf),
    /// The host as it is, with a Python virtual environment made for the sandbox.
    Venv,
    /// A container image.
    Image(Image),
}

/// A file system that others have packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// As registries name it: `python:3.12-slim`.
    Reference(String),
    /// Built from a directory of the host that holds a `Dockerfile`.
    Dockerfile(PathBuf),
}

/// A directory of the host shown inside. Whether it may be is not the engine's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Absolute, and no part of it a link: an engine follows none, for what was checked may have
    /// been replaced since.
    pub host: PathBuf,
    /// Absolute.
    pub guest: PathBuf,
    pub writable: bool,
}

/// What a sandbox can reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// Its own loopback and nothing else.
    #[default]
    Loopback,
    /// Whatever the host can reach.
    Host,
}

impl Default for Spec {
    /// The host's programs, no limits, no mounts, loopback only, not trusted.
    fn default() -> Self {
        Self {
            root: Root::Host { also: Vec::new() },
            env: BTreeMap::new(),
            limits: Limits::default(),
            mounts: Vec::new(),
            network: Network::default(),
            trusted: false,
            runtime: None,
        }
    }
}
