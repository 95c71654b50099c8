//! `atoll prune`: ends what nobody can want any more.

use atoll_client::Filter;
use clap::Args;

use crate::{
    commands::session::{all, lives},
    failure::Result,
    invocation::Invocation,
    witness,
};

/// End sessions left behind by `atoll run` commands that were killed
#[derive(Debug, Args)]
#[command(
    after_help = "Other sessions end at their deadline, or when idle, by themselves; what a killed server left
is found and removed when the next one starts.

Examples:
  atoll prune
  atoll prune --all"
)]
pub(crate) struct Arguments {
    /// Every other session, too
    #[arg(long, short)]
    all: bool,
}

pub(crate) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<u8> {
    // Starting a server reaps what the last one left.
    let client = invocation.client().await?;
    let here = invocation.settings().client.server.is_none();
    let mut ended = Vec::new();
    for session in all(&client, Filter::default()).await? {
        // The witness of another machine's process says nothing here.
        let left =
            here && session.metadata.get(witness::NAME).is_some_and(|run| witness::is_gone(run));
        if !(lives(session.state) && (arguments.all || left)) {
            continue;
        }
        match client.delete_session(&session.session_id, None).await {
            Ok(()) => ended.push(session.session_id),
            // Somebody else was quicker.
            Err(error) if error.code() == Some("not_found") => {}
            Err(error) => return Err(error.into()),
        }
    }
    let shown: Vec<_> = ended.iter().map(ToString::to_string).collect();
    invocation.printer.answer(&ended, || match shown.len() {
        0 => "nothing to end".to_owned(),
        _ => shown.join("\n"),
    })?;
    Ok(0)
}
