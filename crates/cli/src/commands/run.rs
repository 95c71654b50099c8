//! `atoll run`: code in a sandbox of its own, as if it ran here.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

use atoll_client::Client;
use atoll_types::{id::SessionId, process::StartProcess, quantity::Span, session::CreateSession};
use clap::Args;

use crate::{
    arguments::{HERE, SandboxArguments},
    failure::{Doing as _, Failure, Result},
    follow::{self, Followed},
    invocation::Invocation,
    output::Output,
    prepare::create_session,
    signal::{End, Stop},
    witness,
};

/// How much longer than its program a session made for it lives.
const MARGIN: Duration = Duration::from_mins(1);

/// Run code in a sandbox that is gone afterwards
#[derive(Debug, Args)]
#[command(
    after_help = "The exit code is the program's own; 128+n if signal n ended it, 124 if its time was up, 137 if
it ran out of memory, 127 if its interpreter is missing, 125 if it is Atoll's fault.

Output is passed on as it comes. With --json there is one object at the end instead: what was
written, and how it ended.

Examples:
  atoll run -c 'print(6 * 7)'
  atoll run script.py -- --fast input.csv
  atoll run -l bash -c 'echo $0 $1' -- one
  echo 'console.log(1)' | atoll run -l javascript -
  atoll run --timeout 10s --memory 256m --here script.py
  atoll run -v ~/data:/data -e MODE=test -c 'import os; print(os.listdir(\"/data\"))'"
)]
pub(crate) struct Arguments {
    /// A file to run; `-` reads the code from standard input
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The code itself
    #[arg(long, short, conflicts_with = "file")]
    code: Option<String>,
    /// The code's language; otherwise the file's name, or the environment, tells
    #[arg(long, short, value_name = "NAME")]
    language: Option<String>,
    /// End it, and all it started, after this long: 30s, 5m
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
    /// Do not pass standard input on
    #[arg(long)]
    no_stdin: bool,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    passed: Vec<String>,
    #[command(flatten)]
    sandbox: SandboxArguments,
}

pub(crate) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<End> {
    let source = Source::of(&arguments)?;
    let request = request(&arguments)?;
    // From here on a signal must not end us before the session is gone.
    let mut stop = Stop::new()?;
    let client = invocation.client().await?;
    let session = tokio::select! {
        session = create(&client, request, &arguments, invocation) => session?,
        // Dropping the request makes the server undo it.
        asked = stop.asked() => return Ok(End::Asked(asked)),
    };

    let work = within(&client, &session, source, &arguments, invocation);
    let code = tokio::select! {
        code = work => code.map(End::Code),
        asked = stop.asked() => Ok(End::Asked(asked)),
    };
    let ended = tokio::select! {
        ended = client.delete_session(&session, None) => ended,
        asked = stop.asked() => {
            invocation.printer.note(format_args!("session {session} may be left"));
            return Ok(End::Asked(asked));
        }
    };
    match (code, ended) {
        (Ok(code), Err(error)) if error.code() != Some("not_found") => {
            invocation.printer.note(format_args!("cannot end session {session}: {error}"));
            Ok(code)
        }
        (code, _) => code,
    }
}

/// Makes the session, which lives a little longer than its program, if the server allows that.
async fn create(
    client: &Client,
    mut request: CreateSession,
    arguments: &Arguments,
    invocation: &Invocation,
) -> Result<SessionId> {
    let made = match (create_session(client, &request, invocation).await, arguments.timeout) {
        (Err(error), Some(timeout)) if too_long(&error) => {
            request.timeout = Some(timeout);
            create_session(client, &request, invocation).await
        }
        (made, _) => made,
    };
    Ok(made?.session_id)
}

/// Whether it is the session's timeout that the server refuses.
fn too_long(error: &atoll_client::Error) -> bool {
    matches!(error, atoll_client::Error::Refused(refused) if refused.message.starts_with("`timeout`"))
}

/// What to run, read before anything is made.
enum Source {
    Code(String),
    /// A file shown to the sandbox already, at this path.
    Shown(String),
    /// A file to bring: its name and what it holds.
    Brought(String, Vec<u8>),
}

impl Source {
    fn of(arguments: &Arguments) -> Result<Self> {
        if let Some(code) = &arguments.code {
            return Ok(Self::Code(code.clone()));
        }
        let path = arguments.file.as_deref().ok_or_else(|| {
            Failure::usage("there is nothing to run")
                .hint("give code with -c, a FILE, or - for standard input")
        })?;
        if path == Path::new("-") {
            let mut code = String::new();
            let mut stdin = io::stdin();
            stdin.read_to_string(&mut code).doing(|| "cannot read the code".into())?;
            return Ok(Self::Code(code));
        }
        if let Some(shown) = arguments.sandbox.here.and(beneath(path)) {
            return Ok(Self::Shown(shown));
        }
        let content = std::fs::read(path).doing(|| format!("cannot read {}", path.display()))?;
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Failure::usage(format!("{} has no name", path.display())))?;
        Ok(Self::Brought(name.to_owned(), content))
    }
}

/// Where a file of the current directory is in the sandbox that has it at [`HERE`].
fn beneath(path: &Path) -> Option<String> {
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    let file = path.canonicalize().ok()?;
    Some(format!("{HERE}/{}", file.strip_prefix(here).ok()?.to_str()?))
}

fn request(arguments: &Arguments) -> Result<CreateSession> {
    let mut request = arguments.sandbox.request()?;
    request.timeout = arguments.timeout.map(|timeout| Span(timeout.0 + MARGIN));
    request.metadata.insert(witness::NAME.to_owned(), witness::of_this_process());
    Ok(request)
}

/// Runs it in the session and returns the exit code.
async fn within(
    client: &Client,
    session: &SessionId,
    source: Source,
    arguments: &Arguments,
    invocation: &Invocation,
) -> Result<u8> {
    let from_stdin = arguments.file.as_deref() == Some(Path::new("-"));
    let mut start = StartProcess {
        language: arguments.language.clone(),
        args: arguments.passed.clone(),
        cwd: arguments.sandbox.here.map(|_| HERE.to_owned()),
        timeout: arguments.timeout,
        stdin: !(from_stdin || arguments.no_stdin),
        ..StartProcess::default()
    };
    match source {
        Source::Code(code) => start.code = Some(code),
        Source::Shown(path) => start.file = Some(path),
        Source::Brought(name, content) => {
            client.write_bytes(session, &name, content).await?;
            start.file = Some(name);
        }
    }
    let process = client.start_process(session, &start).await?;
    let mut output = Output::new(invocation.printer);
    Ok(match follow::follow(client, session, process.id, start.stdin, &mut output).await? {
        Followed::Ended(end) => {
            output.finish(invocation.printer, &end)?;
            follow::exit_code(&end)
        }
        Followed::Unread => follow::UNREAD,
    })
}
