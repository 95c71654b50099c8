//! `atoll file glob`.

use atoll_types::{id::SessionId, search::Glob};
use clap::Args;

use super::NOTHING;
use crate::{failure::Result, invocation::Invocation, words};

/// Find files by name
#[derive(Debug, Args)]
#[command(
    after_help = "`*` and `?` stand for signs within a name, `[a-z]` for one of a set, `{a,b}` for either, `**` for any
number of directories. Names that begin with a dot are found by patterns that do, or with --hidden.
Links are not followed. Exit code 1: there is none.

Examples:
  atoll file glob SESSION '*.csv'
  atoll file glob SESSION '**/*.{c,h}' --path /usr/src
  atoll file glob SESSION '**/test_*' --json | jq -r '.entries[].path'"
)]
pub(crate) struct Arguments {
    #[arg(value_name = "SESSION")]
    session: SessionId,
    #[arg(value_name = "PATTERN")]
    pattern: String,
    /// Where to look; the home directory if not said
    #[arg(long, value_name = "DIR")]
    path: Option<String>,
    /// Wildcards stand for names that begin with a dot, too
    #[arg(long)]
    hidden: bool,
    /// How many to tell at most, up to 10000
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: u32,
}

pub(super) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<u8> {
    let Arguments { session, pattern, path, hidden, limit } = arguments;
    let client = invocation.client().await?;
    let glob = Glob { pattern, path, hidden, limit: Some(limit) };
    let found = client.glob_files(&session, &glob).await?;
    let empty = found.entries.is_empty();
    if !(empty && invocation.printer.for_people()) {
        invocation.printer.answer(&found, || {
            let paths = found.entries.iter().map(|entry| words::printable(&entry.path));
            paths.collect::<Vec<_>>().join("\n")
        })?;
    }
    if found.truncated {
        invocation.printer.note("there is more than this");
    }
    Ok(if empty { NOTHING } else { 0 })
}
