//! `atoll ps`: the processes of a session.

use atoll_types::{
    id::SessionId,
    process::{Process, ProcessEnd},
};
use clap::Args;

use crate::{
    failure::Result,
    invocation::Invocation,
    printer::{Printer, Tone},
    words,
};

/// How wide a command may be shown.
const WIDE: usize = 60;

/// List the processes of a session
#[derive(Debug, Args)]
#[command(
    after_help = "Those that run and those that have ended, as far as they are remembered, oldest first.

Examples:
  atoll ps SESSION
  atoll ps SESSION --json | jq '.[] | select(.end == null) | .id'"
)]
pub(crate) struct Arguments {
    #[arg(value_name = "SESSION")]
    session: SessionId,
}

pub(crate) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<u8> {
    let client = invocation.client().await?;
    let processes = client.processes(&arguments.session).await?;
    let printer = invocation.printer;
    printer.answer(&processes, || {
        if processes.is_empty() {
            return "no processes; start one with `atoll exec -d SESSION -- COMMAND`".to_owned();
        }
        let rows = processes.iter().map(|process| row(printer, process));
        printer.table(&["PROCESS", "STATE", "STARTED", "OUTPUT", "COMMAND"], rows)
    })?;
    Ok(0)
}

fn row(printer: Printer, process: &Process) -> [String; 5] {
    let (tone, state) = match &process.end {
        None => (Tone::Good, "running".to_owned()),
        Some(end) => ended(end),
    };
    let written = process.written.stdout.saturating_add(process.written.stderr);
    let command = words::printable(&process.command.join(" "));
    let shown: String = command.chars().take(WIDE).collect();
    let more = if shown.len() < command.len() { "…" } else { "" };
    [
        process.id.to_string(),
        printer.word(tone, &state),
        format!("{} ago", words::since(process.started_at)),
        words::size(written),
        format!("{shown}{more}"),
    ]
}

fn ended(end: &ProcessEnd) -> (Tone, String) {
    match (end.exit_code, end.signal) {
        (Some(0), _) => (Tone::Plain, "exited 0".to_owned()),
        (Some(code), _) => (Tone::Bad, format!("exited {code}")),
        (None, Some(signal)) if words::of(&end.reason) == "signaled" => {
            (Tone::Bad, format!("signal {signal}"))
        }
        _ => (Tone::Bad, words::of(&end.reason)),
    }
}
