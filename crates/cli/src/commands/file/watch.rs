//! `atoll file watch`.

use atoll_types::{id::SessionId, watch::Change};
use clap::Args;
use futures_util::StreamExt as _;

use crate::{
    failure::Result,
    follow::UNREAD,
    invocation::Invocation,
    signal::{End, Stop},
    words,
};

/// Tell what happens to files, until ^C or the directory is gone
#[derive(Debug, Args)]
#[command(
    after_help = "A line for each change; in a pipe, or with --json, a line of JSON. `overflow` means that changes were
lost and everything should be looked at again; `unwatched` that there are more directories than can
be watched.

Examples:
  atoll file watch SESSION
  atoll file watch SESSION project -r
  atoll file watch SESSION -r | jq -r 'select(.type == \"created\").path'"
)]
pub(crate) struct Arguments {
    #[arg(value_name = "SESSION")]
    session: SessionId,
    /// A directory; the home directory if not said
    #[arg(value_name = "PATH", default_value = ".")]
    path: String,
    /// All directories below it, too
    #[arg(long, short)]
    recursive: bool,
}

pub(super) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<End> {
    let mut stop = Stop::new()?;
    let Arguments { session, path, recursive } = arguments;
    let client = invocation.client().await?;
    let mut changes = client.watch_files(&session, &path, recursive).await?;
    invocation.printer.note(format!("watching {}", words::printable(&path)));
    loop {
        let change = tokio::select! {
            change = changes.next() => change,
            asked = stop.asked() => return Ok(End::Asked(asked)),
        };
        let Some(change) = change else { return Ok(End::Code(0)) };
        let change = change?;
        if !invocation.printer.event(&change, || text(&change))? {
            return Ok(End::Code(UNREAD));
        }
    }
}

fn text(change: &Change) -> String {
    let name = |path: &String, directory: &bool| {
        format!("{}{}", words::printable(path), if *directory { "/" } else { "" })
    };
    match change {
        Change::Created { path, directory } => format!("created     {}", name(path, directory)),
        Change::Written { path } => format!("written     {}", name(path, &false)),
        Change::Removed { path, directory } => format!("removed     {}", name(path, directory)),
        Change::Moved { from, path, directory } => {
            format!("moved       {} -> {}", name(from, directory), name(path, directory))
        }
        Change::Attributes { path, directory } => format!("attributes  {}", name(path, directory)),
        Change::Overflow => "overflow    changes were lost: look at everything again".to_owned(),
        Change::Unwatched { path } => format!("unwatched   {}", name(path, &true)),
    }
}
