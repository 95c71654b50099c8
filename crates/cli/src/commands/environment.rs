//! `atoll env`: what sandboxes can be made of.

use atoll_types::environment::EnvironmentInfo;
use clap::{Args, Subcommand};

use crate::{failure::Result, invocation::Invocation};

/// List environments
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:
  atoll env ls")]
pub(crate) enum Command {
    Ls(List),
}

/// List what sandboxes can be made of
#[derive(Debug, Args)]
#[command(after_help = "Example:
  atoll env ls")]
pub(crate) struct List {}

pub(crate) async fn run(command: Command, invocation: &Invocation) -> Result<u8> {
    let Command::Ls(List {}) = command;
    let environments = invocation.client().await?.environments().await?;
    let printer = invocation.printer;
    printer.answer(&environments, || {
        let rows = environments.iter().map(row);
        printer.table(&["ENVIRONMENT", "ALSO", "LANGUAGE", "ENGINES", "DESCRIPTION"], rows)
    })?;
    Ok(0)
}

fn row(environment: &EnvironmentInfo) -> [String; 5] {
    [
        environment.name.clone(),
        environment.aliases.join(","),
        environment.language.clone(),
        environment.engines.join(","),
        environment.description.clone(),
    ]
}
