//! `atoll logs`: what a process wrote, and writes.

use atoll_types::{
    id::{ProcessId, SessionId},
    process::{Process, Written},
};
use clap::Args;

use crate::{
    arguments::Bytes,
    failure::{Failure, Result},
    follow,
    invocation::Invocation,
    journal::{Journal, Read},
    scroll::Scroll,
};

/// Show what a process of a session wrote
#[derive(Debug, Args)]
#[command(
    after_help = "The last process that was started is shown unless another is named; `atoll ps SESSION` lists them.
With --follow it goes on until the process ends, over lost connections and restarts of the server,
with no byte missing and none twice; the exit code is the process's then. ^C ends only the showing.
With --json each piece is a line: {\"type\": \"output\", \"stream\", \"offset\", \"data\"} with data in base64.

Examples:
  atoll exec -d SESSION -- make all
  atoll logs -f SESSION
  atoll logs SESSION 3 --tail 20
  atoll logs SESSION 3 --since-offset 1000"
)]
pub(crate) struct Arguments {
    #[arg(value_name = "SESSION")]
    session: SessionId,
    #[arg(value_name = "PROCESS", value_parser = |id: &str| id.parse().map(ProcessId))]
    process: Option<ProcessId>,
    /// Go on as it writes, until it ends
    #[arg(long, short)]
    follow: bool,
    /// Only the last lines of each stream
    #[arg(long, value_name = "LINES")]
    tail: Option<usize>,
    /// Begin at these bytes of standard output and standard error
    #[arg(long, value_name = "BYTES[:BYTES]", conflicts_with = "tail")]
    since_offset: Option<Bytes>,
}

pub(crate) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<u8> {
    let client = invocation.client().await?;
    let session = &arguments.session;
    let Process { id, written, .. } = match arguments.process {
        Some(process) => client.process(session, process).await?,
        None => client.processes(session).await?.pop().ok_or_else(|| {
            Failure::new(format!("session {session} has no processes"))
                .hint("`atoll exec -d SESSION -- COMMAND` starts one")
        })?,
    };
    let from = arguments.since_offset.map_or_else(Written::default, |Bytes(from)| from);
    let mut journal = Journal::new(invocation, client, session, id, from);
    let mut scroll = Scroll::new(invocation.printer, arguments.tail);
    // What is there, then what comes.
    let mut end = journal.read(&mut scroll, Some(written)).await?;
    scroll.show().await?;
    if arguments.follow && matches!(end, Read::Reached) {
        end = journal.read(&mut scroll, None).await?;
    }
    match end {
        Read::Ended(end) => {
            scroll.finish(&end).await?;
            Ok(if arguments.follow { follow::exit_code(&end) } else { 0 })
        }
        Read::Unread => Ok(follow::UNREAD),
        Read::Reached => Ok(0),
    }
}
