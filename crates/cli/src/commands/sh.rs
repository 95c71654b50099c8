//! `atoll sh`: a terminal in a sandbox.

use atoll_client::{Client, Opening};
use atoll_types::{
    execution::CommandLine,
    id::{ProcessId, SessionId},
    process::{Process, StartProcess, TerminalSize},
    session::CreateSession,
};
use clap::Args;

use crate::{
    arguments::{HERE, SandboxArguments},
    failure::{Failure, OURS, Result},
    follow,
    invocation::Invocation,
    signal::{End, Stop},
    terminal::{DetachKeys, Tty, Visit, visit},
};

/// Use a terminal in a session, or in a sandbox that is gone afterwards
#[derive(Debug, Args)]
#[command(
    after_help = "Without SESSION it makes one, and removes it at the end; without COMMAND it starts the sandbox's
shell. Every key goes to the sandbox, ^C too. ctrl-p ctrl-q leaves and lets it run on; --attach
comes back to it, and shows again what was shown last. The exit code is the command's own.

Examples:
  atoll sh
  atoll sh SESSION
  atoll sh SESSION -- vim notes.txt
  atoll sh SESSION --attach
  atoll sh SESSION --process 3"
)]
pub(crate) struct Arguments {
    /// The session; without it, one is made, and removed at the end
    #[arg(value_name = "SESSION")]
    session: Option<SessionId>,
    /// Come back to the terminal of the session that is running
    #[arg(long, short, requires = "session", conflicts_with_all = ["process", "command"])]
    attach: bool,
    /// Come back to the terminal of this process
    #[arg(long, short, value_name = "NUMBER", requires = "session", conflicts_with = "command")]
    process: Option<u64>,
    /// What to type to leave without ending anything: keys like ctrl-x or y, or `none`
    #[arg(long, value_name = "KEYS", default_value = "ctrl-p,ctrl-q")]
    detach_keys: DetachKeys,
    /// The program and its arguments, instead of the shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    sandbox: SandboxArguments,
}

pub(crate) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<End> {
    let request = arguments.sandbox.request()?;
    if arguments.session.is_some() && request != CreateSession::default() {
        return Err(Failure::usage(
            "a session that is there is not made anew: it keeps its limits",
        )
        .hint("give flags of the sandbox to `atoll session create`, or leave SESSION out"));
    }
    let size = Tty::size_of_here()?;
    let mut stop = Stop::new()?;
    let client = invocation.client().await?;
    let ours = arguments.session.is_none();
    let session = if let Some(session) = &arguments.session {
        session.clone()
    } else {
        tokio::select! {
            made = client.create_session(&request) => made?.session_id,
            // Dropping the request makes the server undo it.
            asked = stop.asked() => return Ok(End::Asked(asked)),
        }
    };
    let place = Place { client: &client, session: &session, invocation };
    let visited = async {
        let target = place.target(&arguments, size).await?;
        place.visit(target, size, arguments.detach_keys.clone(), &mut stop).await
    };
    let visited = visited.await;
    if ours
        && !matches!(visited, Ok((Visit::Left | Visit::Lost(_), _)))
        && let Err(error) = client.delete_session(&session, None).await
        && error.code() != Some("not_found")
    {
        invocation.printer.note(format_args!("cannot end session {session}: {error}"));
    }
    let (visit, process) = visited?;
    place.end(visit, process)
}

/// Which terminal of a session to use.
pub(crate) enum Target {
    /// A new one, with the session's shell.
    Shell,
    /// That of a process started for it just now.
    New(ProcessId),
    /// One that others may have used before.
    Known(ProcessId),
}

/// A session whose terminals are used.
pub(crate) struct Place<'a> {
    pub(crate) client: &'a Client,
    pub(crate) session: &'a SessionId,
    pub(crate) invocation: &'a Invocation,
}

impl Place<'_> {
    /// What of the session's to use; something is started for it if need be.
    async fn target(&self, arguments: &Arguments, size: TerminalSize) -> Result<Target> {
        if let Some(process) = arguments.process {
            return Ok(Target::Known(ProcessId(process)));
        }
        if arguments.attach {
            return only(self.session, &self.running().await?).map(Target::Known);
        }
        let others = match arguments.session {
            Some(_) => self.running().await?,
            None => Vec::new(),
        };
        if let [other] = &others[..] {
            let (session, number) = (self.session, other.id);
            self.invocation.printer.note(format_args!(
                "another terminal runs here: `atoll sh {session} --process {number}` goes there"
            ));
        }
        let cwd = arguments.sandbox.here.map(|_| HERE.to_owned());
        if arguments.command.is_empty() && cwd.is_none() {
            return Ok(Target::Shell);
        }
        let start = |words| StartProcess {
            command: Some(CommandLine::Words(words)),
            cwd: cwd.clone(),
            terminal: Some(size),
            ..StartProcess::default()
        };
        let started = if arguments.command.is_empty() {
            match self.client.start_process(self.session, &start(vec!["bash".to_owned()])).await {
                Err(error) if error.code() == Some("program_missing") => {
                    let plain = start(vec!["sh".to_owned()]);
                    self.client.start_process(self.session, &plain).await
                }
                started => started,
            }
        } else {
            self.client.start_process(self.session, &start(arguments.command.clone())).await
        };
        Ok(Target::New(started?.id))
    }

    /// The terminals of the session in which something runs.
    async fn running(&self) -> Result<Vec<Process>> {
        let all = self.client.processes(self.session).await?;
        Ok(all.into_iter().filter(|one| one.terminal.is_some() && one.end.is_none()).collect())
    }

    /// Uses a terminal, and says whose it was.
    pub(crate) async fn visit(
        &self,
        target: Target,
        size: TerminalSize,
        keys: DetachKeys,
        stop: &mut Stop,
    ) -> Result<(Visit, ProcessId)> {
        let (process, back) = match target {
            Target::Shell => (None, false),
            Target::New(process) => (Some(process), false),
            Target::Known(process) => (Some(process), true),
        };
        let opening = Opening { process, offset: 0, size: Some(size) };
        let terminal = self.client.terminal(self.session, opening).await?;
        let number = terminal.process.id;
        Ok((visit(terminal, back, keys, stop).await?, number))
    }

    /// Says how a visit ended, and how to come back if that is possible.
    pub(crate) fn end(&self, visit: Visit, process: ProcessId) -> Result<End> {
        let printer = self.invocation.printer;
        let way_back = format!("`atoll sh {} --process {process}` comes back", self.session);
        match visit {
            Visit::Ended(end) => {
                follow::explain(printer, &end, false);
                Ok(End::Code(follow::exit_code(&end)))
            }
            Visit::Left => {
                printer.new_line();
                printer.note(format_args!("left process {process} running"));
                printer.hint(way_back);
                Ok(End::Code(0))
            }
            Visit::Asked(asked) => Ok(End::Asked(asked)),
            Visit::Closed => Ok(End::Code(OURS)),
            Visit::Lost(error) => {
                printer.new_line();
                let failure = Failure::from(error);
                Err(Failure::new(format!("lost the terminal: {failure}"))
                    .hint(format!("if the server is there, {way_back}")))
            }
        }
    }
}

/// The one process to come back to.
fn only(session: &SessionId, running: &[Process]) -> Result<ProcessId> {
    match running.len() {
        1 => Ok(running[0].id),
        0 => Err(Failure::new(format!("no terminal runs in session {session}"))
            .hint(format!("`atoll sh {session}` starts one"))),
        count => {
            let numbers: Vec<_> = running.iter().map(|one| one.id.to_string()).collect();
            Err(Failure::new(format!("{count} terminals run in session {session}"))
                .hint(format!("say which with --process: {}", numbers.join(", "))))
        }
    }
}
