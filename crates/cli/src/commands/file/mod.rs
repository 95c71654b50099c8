//! `atoll file`: finding, changing and following the files of a session.

mod edit;
mod glob;
mod grep;
mod watch;

use clap::Subcommand;

use crate::{failure::Result, invocation::Invocation, signal::End};

/// Find, change and follow files of a session
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  atoll file glob SESSION '**/*.py'
  atoll file grep SESSION TODO src
  atoll file edit SESSION main.py 'retries = 3' 'retries = 5'
  atoll file watch SESSION -r")]
pub(crate) enum Command {
    Glob(glob::Arguments),
    Grep(grep::Arguments),
    Edit(edit::Arguments),
    Watch(watch::Arguments),
}

pub(crate) async fn run(command: Command, invocation: &Invocation) -> Result<End> {
    let code = match command {
        Command::Glob(arguments) => glob::run(arguments, invocation).await?,
        Command::Grep(arguments) => grep::run(arguments, invocation).await?,
        Command::Edit(arguments) => edit::run(arguments, invocation).await?,
        Command::Watch(arguments) => return watch::run(arguments, invocation).await,
    };
    Ok(End::Code(code))
}

/// Exit code of a search that found nothing, as `grep` has it.
const NOTHING: u8 = 1;
