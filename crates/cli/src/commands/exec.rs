//! `atoll exec`: a command in a session, as if it ran here.

use atoll_types::{
    execution::CommandLine,
    id::{ProcessId, SessionId},
    process::StartProcess,
    quantity::Span,
};
use clap::Args;

use crate::{
    arguments::Pair,
    commands::sh::{Place, Target},
    failure::{Failure, Result},
    follow::{self, Followed},
    invocation::Invocation,
    output::Output,
    signal::{End, Stop},
    terminal::{DetachKeys, Tty},
};

/// Run a command in a session
#[derive(Debug, Args)]
#[command(
    after_help = "The session stays; ^C ends the command and all it started. Exit codes are those of `atoll run`,
and so is what --json does.

Examples:
  atoll exec SESSION -- ls -la
  atoll exec SESSION -- sh -c 'echo $HOME | tee home.txt'
  atoll exec SESSION -l python -c 'print(open(\"home.txt\").read())'
  atoll exec SESSION --cwd project --timeout 5m -- make
  atoll exec -t SESSION -- top
  atoll exec -d SESSION -- sh -c 'make all'; atoll logs -f SESSION"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Arguments {
    #[arg(value_name = "SESSION")]
    session: SessionId,
    /// Code instead of a command
    #[arg(long, short)]
    code: Option<String>,
    /// The code's language
    #[arg(long, short, value_name = "NAME", requires = "code")]
    language: Option<String>,
    /// Where to run; relative to the home directory
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Set a variable of it
    #[arg(long, short = 'e', value_name = "NAME=VALUE")]
    env: Vec<Pair>,
    /// End it, and all it started, after this long: 30s, 5m
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
    /// Do not pass standard input on
    #[arg(long, conflicts_with = "tty")]
    no_stdin: bool,
    /// Give it a terminal, and this one to be used by it, as `atoll sh` does
    #[arg(long, short)]
    tty: bool,
    /// Pass standard input on, which is done anyway
    #[arg(long, short, hide = true)]
    interactive: bool,
    /// Leave it to run, and print its number: `atoll logs -f SESSION` follows it
    #[arg(long, short, conflicts_with = "tty")]
    detach: bool,
    /// The program and its arguments; with --code, the code's arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "code")]
    command: Vec<String>,
}

pub(crate) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<End> {
    if arguments.tty {
        return with_terminal(arguments, invocation).await;
    }
    let mut stop = Stop::new()?;
    let client = invocation.client().await?;
    let session = arguments.session.clone();
    let detach = arguments.detach;
    let start = start(arguments);
    let process = client.start_process(&session, &start).await?;
    if detach {
        invocation.printer.line(&process, || process.id.to_string())?;
        return Ok(End::Code(0));
    }
    let process = process.id;

    let mut output = Output::new(invocation.printer);
    let followed = tokio::select! {
        followed = follow::follow(&client, &session, process, start.stdin, &mut output) => {
            followed.map_err(|failure| goes_on(failure, &session, process))?
        }
        asked = stop.asked() => {
            client.kill_process(&session, process).await?;
            return Ok(End::Asked(asked));
        }
    };
    match followed {
        Followed::Ended(end) => {
            output.finish(invocation.printer, &end)?;
            Ok(End::Code(follow::exit_code(&end)))
        }
        Followed::Unread => {
            client.kill_process(&session, process).await?;
            Ok(End::Code(follow::UNREAD))
        }
    }
}

async fn with_terminal(arguments: Arguments, invocation: &Invocation) -> Result<End> {
    let size = Tty::size_of_here()?;
    let mut stop = Stop::new()?;
    let client = invocation.client().await?;
    let session = arguments.session.clone();
    let start = StartProcess { terminal: Some(size), ..start(arguments) };
    let process = client.start_process(&session, &start).await?.id;
    let place = Place { client: &client, session: &session, invocation };
    let target = Target::New(process);
    let (visit, process) = place.visit(target, size, DetachKeys::default(), &mut stop).await?;
    place.end(visit, process)
}

/// What broke is the connection, if no server said otherwise.
fn goes_on(failure: Failure, session: &SessionId, process: ProcessId) -> Failure {
    if failure.kind.is_some() {
        return failure;
    }
    failure.hint(format!("the command may go on: atoll logs -f {session} {process}"))
}

fn start(arguments: Arguments) -> StartProcess {
    let (command, args) = match arguments.code {
        Some(_) => (None, arguments.command),
        None => (Some(CommandLine::Words(arguments.command)), Vec::new()),
    };
    StartProcess {
        code: arguments.code,
        language: arguments.language,
        command,
        file: None,
        args,
        env: arguments.env.into_iter().map(|pair| (pair.name, pair.value)).collect(),
        cwd: arguments.cwd,
        timeout: arguments.timeout,
        stdin: !arguments.no_stdin && !arguments.detach,
        terminal: None,
    }
}
