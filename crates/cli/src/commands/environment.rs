//! `atoll env`: what sandboxes can be made of.

use atoll_types::environment::EnvironmentInfo;
use clap::{Args, Subcommand};

use serde::Serialize;

use crate::{failure::Result, invocation::Invocation, prepare::prepare, words};

/// List environments, and get what they need
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  atoll env ls
  atoll env pull --engine docker python")]
pub(crate) enum Command {
    Ls(List),
    Pull(Pull),
}

/// List what sandboxes can be made of
#[derive(Debug, Args)]
#[command(after_help = "Example:
  atoll env ls")]
pub(crate) struct List {}

/// Get what an environment needs and this server lacks: pull its image, or build it
#[derive(Debug, Args)]
#[command(
    after_help = "On engines whose sandboxes start from images, a name that is no environment's is an image's.
`run` and `session create` do this by themselves on a terminal.

Examples:
  atoll env pull --engine docker python
  atoll env pull --engine docker ruby:3.4-slim"
)]
pub(crate) struct Pull {
    #[arg(value_name = "NAME")]
    environment: String,
    /// For this engine; otherwise the environment's own, or the server's default
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
}

#[derive(Serialize)]
struct Ready<'a> {
    environment: &'a str,
    ready: bool,
}

pub(crate) async fn run(command: Command, invocation: &Invocation) -> Result<u8> {
    match command {
        Command::Ls(List {}) => list(invocation).await,
        Command::Pull(pull) => get(pull, invocation).await,
    }
}

async fn get(pull: Pull, invocation: &Invocation) -> Result<u8> {
    let (client, printer) = (invocation.client().await?, invocation.printer);
    prepare(&client, &pull.environment, pull.engine.as_deref(), printer).await?;
    let ready = Ready { environment: &pull.environment, ready: true };
    printer.line(&ready, || format!("{} is ready", words::printable(&pull.environment)))?;
    Ok(0)
}

async fn list(invocation: &Invocation) -> Result<u8> {
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
