//! `atoll daemon`: the server that commands start for themselves.

use std::path::{Path, PathBuf};

use atoll_client::{Client, Filter};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    commands::session::{all, lives},
    failure::{Failure, Result},
    invocation::Invocation,
    server::{self, Found, Mode, Record},
};

/// Look at, or stop, the server of the data directory
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  atoll daemon status
  atoll daemon stop")]
pub(crate) enum Command {
    Status(Status),
    Stop(Stop),
    /// Be the private server (commands start it by themselves)
    #[command(hide = true, after_help = "Not meant to be typed.")]
    Run(Run),
}

/// Say whether a server runs, since when, and where its log is
#[derive(Debug, Args)]
#[command(after_help = "The exit code is 1 if none runs.

Example:
  atoll daemon status")]
pub(crate) struct Status {}

/// Stop the server, and end its sessions first
#[derive(Debug, Args)]
#[command(after_help = "With --keep the sandboxes live on, and the next server takes them over.

Examples:
  atoll daemon stop
  atoll daemon stop --keep")]
pub(crate) struct Stop {
    /// Leave the sessions to the next server
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Run {}

pub(crate) async fn run(command: Command, invocation: &Invocation) -> Result<u8> {
    match command {
        Command::Status(Status {}) => status(invocation).await,
        Command::Stop(arguments) => stop(arguments, invocation).await,
        Command::Run(Run {}) => {
            server::run(&invocation.loaded, Mode::Private, invocation.printer).await?;
            Ok(0)
        }
    }
}

/// A server and its files.
#[derive(Serialize)]
struct Running<'a> {
    #[serde(flatten)]
    record: &'a Record,
    socket: &'a Path,
    /// None for `atoll serve`, which writes to its standard error.
    log: Option<PathBuf>,
}

async fn status(invocation: &Invocation) -> Result<u8> {
    let place = invocation.place();
    place.used()?;
    let found = server::find(&place).await;
    let shown = found.as_ref().map(|Found { record, socket }| Running {
        record,
        socket,
        log: (record.mode == Mode::Private).then(|| place.log()),
    });
    invocation.printer.answer(&shown, || match &shown {
        Some(Running { record, socket, log }) => {
            let log = log.iter().map(|log| format!("\nlog: {}", log.display()));
            format!("{record}\nsocket: {}{}", socket.display(), log.collect::<String>())
        }
        None => "no server runs; commands start one when they need it".to_owned(),
    })?;
    Ok(u8::from(found.is_none()))
}

async fn stop(arguments: Stop, invocation: &Invocation) -> Result<u8> {
    let place = invocation.place();
    let Some(Found { record, socket }) = server::find(&place).await else {
        invocation.printer.note("no server runs");
        return Ok(0);
    };
    if !arguments.keep {
        end_sessions(&Client::unix(socket)).await?;
    }
    server::stop(&place, &record).await?;
    invocation.printer.note(format_args!("stopped the server (pid {})", record.pid));
    Ok(0)
}

async fn end_sessions(client: &Client) -> Result {
    for session in all(client, Filter::default()).await? {
        if !lives(session.state) {
            continue;
        }
        match client.delete_session(&session.session_id, None).await {
            Ok(()) => {}
            Err(error) if error.code() == Some("not_found") => {}
            Err(error) => {
                return Err(Failure::from(error)
                    .hint("`atoll daemon stop --keep` stops the server and leaves its sessions"));
            }
        }
    }
    Ok(())
}
