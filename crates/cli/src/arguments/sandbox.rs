//! Flags of every command that makes a sandbox.

use atoll_types::{
    limits::Limits,
    quantity::{Size, Span},
    session::{CreateSession, MountMode},
};
use clap::{Args, ValueEnum};

use super::{Bind, Pair};
use crate::failure::Result;

/// What the sandbox is made of and may use.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxArguments {
    /// What the sandbox is made of; `atoll env ls` lists them
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// What makes the sandbox; `atoll engines` lists them
    #[arg(long, value_name = "NAME")]
    pub(crate) engine: Option<String>,
    /// Show a host directory inside, for reading unless it says rw
    #[arg(long, short = 'v', value_name = "HOST:GUEST[:ro|rw]")]
    pub(crate) volume: Vec<Bind>,
    /// Show the current directory at /here, for reading unless it says rw, and start there
    #[arg(long, value_name = "ro|rw", num_args = 0..=1, default_missing_value = "ro", require_equals = true)]
    pub(crate) here: Option<Here>,
    /// Set a variable of everything that runs in it
    #[arg(long, short = 'e', value_name = "NAME=VALUE")]
    pub(crate) env: Vec<Pair>,
    /// Memory of all processes together: 64m, 2g
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Size>,
    /// Processors' worth of time: 0.5 is half of one
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cpus: Option<f64>,
    /// Processes and threads at one time
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pids: Option<u32>,
    /// Bytes in the sandbox's own writable places
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk: Option<Size>,
    /// Processor time of one execution, all its processes together: 10s
    #[arg(long, value_name = "TIME")]
    pub(crate) cpu_time: Option<Span>,
    /// Bytes each stream of one execution may write
    #[arg(long, value_name = "SIZE")]
    pub(crate) output: Option<Size>,
    /// The code is known and trusted: an engine without isolation will do
    #[arg(long)]
    pub(crate) trusted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Here {
    Ro,
    Rw,
}

impl SandboxArguments {
    /// The request for a session with all this, and the server's own choice for the rest.
    pub(crate) fn request(&self) -> Result<CreateSession> {
        let here = self
            .here
            .map(|here| Bind::here(if here == Here::Rw { MountMode::Rw } else { MountMode::Ro }));
        let mounts = self.volume.iter().chain(&here).map(Bind::request).collect::<Result<_>>()?;
        let limits = Limits {
            memory: self.memory,
            cpus: self.cpus,
            cpu_time: self.cpu_time,
            pids: self.pids,
            open_files: None,
            output: self.output,
            disk: self.disk,
        };
        Ok(CreateSession {
            environment: self.environment.clone(),
            engine: self.engine.clone(),
            env: self.env.iter().cloned().map(|pair| (pair.name, pair.value)).collect(),
            limits: (limits != Limits::default()).then_some(limits),
            mounts,
            trusted: self.trusted,
            ..CreateSession::default()
        })
    }
}
