//! `atoll session`: sandboxes that stay.

use atoll_client::{Client, Filter};
use atoll_types::{
    engine::Strength,
    id::SessionId,
    quantity::Span,
    session::{Metrics, Session, State},
};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    arguments::{Pair, SandboxArguments},
    failure::{Failure, Result},
    invocation::Invocation,
    prepare::create_session,
    printer::{self, Printer, Tone},
    words,
};

/// Make, list, show and end sessions
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  atoll session create --metadata task=42
  atoll session ls
  atoll session rm SESSION")]
pub(crate) enum Command {
    Create(Create),
    Ls(List),
    Show(Show),
    Rm(Remove),
}

/// Make a session: a sandbox that stays until its time is up or it is ended
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  atoll session create
  atoll session create --environment node --memory 1g --timeout 2h
  id=$(atoll session create --quiet); atoll exec $id -- ls")]
pub(crate) struct Create {
    /// End the session after this long, whatever it is doing: 30m, 2h
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
    /// Something of yours to keep with it
    #[arg(long, value_name = "NAME=VALUE")]
    metadata: Vec<Pair>,
    #[command(flatten)]
    sandbox: SandboxArguments,
}

/// List sessions
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  atoll session ls
  atoll session ls --all --metadata task=42
  atoll session ls --json | jq -r '.[].session_id'")]
pub(crate) struct List {
    /// Those that have ended, too, as far as they are remembered
    #[arg(long, short)]
    all: bool,
    /// Only those of this environment
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// Only those of this engine
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// Only those that have this
    #[arg(long, value_name = "NAME=VALUE")]
    metadata: Vec<Pair>,
}

/// Show one session and what it uses
#[derive(Debug, Args)]
#[command(after_help = "Example:
  atoll session show SESSION")]
pub(crate) struct Show {
    #[arg(value_name = "SESSION")]
    session: SessionId,
}

/// End sessions: their processes and their files are gone
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  atoll session rm SESSION OTHER
  atoll session rm --all")]
pub(crate) struct Remove {
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    sessions: Vec<SessionId>,
    /// Every session there is
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
}

pub(crate) async fn run(command: Command, invocation: &Invocation) -> Result<u8> {
    match command {
        Command::Create(arguments) => create(arguments, invocation).await?,
        Command::Ls(arguments) => list(arguments, invocation).await?,
        Command::Show(arguments) => show(arguments, invocation).await?,
        Command::Rm(arguments) => return remove(arguments, invocation).await,
    }
    Ok(0)
}

async fn create(arguments: Create, invocation: &Invocation) -> Result {
    let mut request = arguments.sandbox.request()?;
    request.timeout = arguments.timeout;
    request.metadata.extend(arguments.metadata.into_iter().map(|pair| (pair.name, pair.value)));
    let printer = invocation.printer;
    let session = create_session(&invocation.client().await?, &request, invocation).await?;
    if printer.quiet() {
        return printer::text(session.session_id.as_str());
    }
    printer.answer(&session, || {
        let left = words::until(session.expires_at);
        format!(
            "{}\n{} on {}, ends in {left}; try: atoll exec {} -- ls -la",
            printer.heading(session.session_id.as_str()),
            session.environment,
            session.engine,
            session.session_id
        )
    })
}

async fn list(arguments: List, invocation: &Invocation) -> Result {
    let filter = Filter {
        all: arguments.all,
        environment: arguments.environment,
        engine: arguments.engine,
        metadata: arguments.metadata.into_iter().map(|pair| (pair.name, pair.value)).collect(),
        ..Filter::default()
    };
    let mut sessions = match invocation.client_if_used().await? {
        Some(client) => all(&client, filter).await?,
        None => Vec::new(),
    };
    sessions.retain(|session| arguments.all || lives(session.state));
    let printer = invocation.printer;
    printer.answer(&sessions, || {
        if sessions.is_empty() {
            return "no sessions; make one with `atoll session create`".to_owned();
        }
        let rows = sessions.iter().map(|session| row(printer, session));
        printer.table(
            &["SESSION", "STATE", "ENVIRONMENT", "ENGINE", "AGE", "ENDS IN", "METADATA"],
            rows,
        )
    })
}

fn row(printer: Printer, session: &Session) -> [String; 7] {
    let metadata: Vec<_> = session
        .metadata
        .iter()
        .map(|(name, value)| format!("{}={}", words::printable(name), words::printable(value)))
        .collect();
    let ends = if lives(session.state) { words::until(session.expires_at) } else { "-".to_owned() };
    [
        session.session_id.to_string(),
        state(printer, session),
        words::printable(&session.environment),
        session.engine.clone(),
        words::since(session.created_at),
        ends,
        metadata.join(" "),
    ]
}

fn state(printer: Printer, session: &Session) -> String {
    let tone = match session.state {
        State::Ready | State::Busy => Tone::Good,
        State::Creating | State::Destroying => Tone::Weak,
        State::Failed | State::Lost => Tone::Bad,
        State::Gone => Tone::Plain,
    };
    let word = words::of(&session.state);
    printer.word(
        tone,
        &match &session.end {
            Some(end) => format!("{word} ({})", words::of(end)),
            None => word,
        },
    )
}

/// Whether a session in this state still has, or is about to have, a sandbox.
pub(crate) fn lives(state: State) -> bool {
    match state {
        State::Creating | State::Ready | State::Busy | State::Destroying => true,
        State::Gone | State::Failed | State::Lost => false,
    }
}

/// Every session the filter lets through, page by page.
pub(crate) async fn all(client: &Client, mut filter: Filter) -> Result<Vec<Session>> {
    let mut sessions = Vec::new();
    loop {
        let page = client.sessions(&filter).await?;
        sessions.extend(page.sessions);
        match page.next {
            Some(next) => filter.after = Some(next),
            None => return Ok(sessions),
        }
    }
}

#[derive(Serialize)]
struct Shown {
    session: Session,
    metrics: Option<Metrics>,
}

async fn show(arguments: Show, invocation: &Invocation) -> Result {
    let client = invocation.client().await?;
    let session = client.session(&arguments.session).await?;
    // It may end between the two questions.
    let metrics =
        if lives(session.state) { client.metrics(&arguments.session).await.ok() } else { None };
    let printer = invocation.printer;
    let shown = Shown { session, metrics };
    printer.answer(&shown, || text(printer, &shown))
}

fn text(printer: Printer, shown: &Shown) -> String {
    let Shown { session, metrics } = shown;
    let mut rows = vec![
        ("session", session.session_id.to_string()),
        ("sandbox", session.sandbox_id.to_string()),
        ("state", state(printer, session)),
        ("environment", words::printable(&session.environment)),
        ("engine", session.engine.clone()),
        ("created", format!("{} ago", words::since(session.created_at))),
    ];
    if lives(session.state) {
        rows.push(("ends in", words::until(session.expires_at)));
    }
    if let Some(metrics) = metrics {
        let limits = &session.limits;
        let amount = |used: Option<u64>, most: Option<u64>| match (used, most) {
            (Some(used), Some(most)) => {
                format!("{} of {}", words::size(used), words::size(most))
            }
            (Some(used), None) => words::size(used),
            (None, _) => "not known".to_owned(),
        };
        rows.push(("memory", amount(metrics.memory, limits.memory.map(|size| size.0))));
        rows.push(("disk", amount(metrics.disk_used, metrics.disk_total)));
        let pids = metrics.pids.map_or("not known".to_owned(), |pids| pids.to_string());
        let most = limits.pids.map_or(String::new(), |most| format!(" of {most}"));
        rows.push(("processes", pids + &most));
        if let Some(time) = metrics.cpu_time {
            rows.push(("processor time", format!("{:.2}s", time.0.as_secs_f64())));
        }
    }
    for grade in &session.grades {
        let how = match grade.strength {
            Strength::Refused => "not limited",
            Strength::Weak => "limited weakly",
            Strength::Full => "limited",
        };
        rows.push((how, format!("{}: {}", grade.limit, grade.by)));
    }
    for (name, value) in &session.metadata {
        rows.push(("metadata", format!("{}={}", words::printable(name), words::printable(value))));
    }
    words::pairs(rows.iter().map(|(name, value)| (*name, value.as_str())))
}

async fn remove(arguments: Remove, invocation: &Invocation) -> Result<u8> {
    let client = invocation.client().await?;
    let sessions = if arguments.all {
        let living = all(&client, Filter::default()).await?.into_iter();
        living.filter(|session| lives(session.state)).map(|session| session.session_id).collect()
    } else {
        arguments.sessions
    };
    let (mut ended, mut code) = (Vec::new(), 0);
    for session in sessions {
        match client.delete_session(&session, None).await {
            Ok(()) => ended.push(session),
            Err(error) => {
                let failure = Failure::from(error);
                code = failure.code;
                invocation.printer.failure(&failure);
            }
        }
    }
    let shown: Vec<_> = ended.iter().map(ToString::to_string).collect();
    if !(ended.is_empty() && code != 0) {
        invocation.printer.answer(&ended, || shown.join("\n"))?;
    }
    Ok(code)
}
