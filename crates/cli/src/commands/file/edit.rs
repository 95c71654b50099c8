//! `atoll file edit`.

use atoll_types::{
    id::SessionId,
    search::{Edit, EditFile},
};
use clap::Args;

use crate::{failure::Result, invocation::Invocation};

/// Replace text in a file
#[derive(Debug, Args)]
#[command(
    after_help = "OLD must be in the file exactly once, unless --all or --expect says otherwise; if it is not, nothing
is changed. The file is replaced in one step and keeps its permissions.

Examples:
  atoll file edit SESSION main.py 'retries = 3' 'retries = 5'
  atoll file edit SESSION notes.md colour color --all
  atoll file edit SESSION list.txt old new --expect 2"
)]
pub(crate) struct Arguments {
    #[arg(value_name = "SESSION")]
    session: SessionId,
    #[arg(value_name = "PATH")]
    path: String,
    #[arg(value_name = "OLD", allow_hyphen_values = true)]
    old: String,
    #[arg(value_name = "NEW", allow_hyphen_values = true)]
    new: String,
    /// Replace it wherever it is
    #[arg(long, short)]
    all: bool,
    /// Replace it if it is there exactly this often
    #[arg(long, value_name = "COUNT", conflicts_with = "all")]
    expect: Option<u64>,
}

pub(super) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<u8> {
    let Arguments { session, path, old, new, all, expect } = arguments;
    let client = invocation.client().await?;
    let edits = vec![Edit { old, new, replace_all: all, expected: expect }];
    let edited = client.edit_file(&session, &EditFile { path, edits }).await?;
    invocation.printer.answer(&edited, || match edited.replaced {
        1 => "replaced 1 place".to_owned(),
        count => format!("replaced {count} places"),
    })?;
    Ok(0)
}
