//! Starting a command.

use std::{sync::Arc, time::Duration};

use atoll_agent_protocol::message::{Failure, Start};
use tokio::{
    io::AsyncReadExt as _,
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::{
    input,
    run::{Run, Until},
    table::{Screen, Table},
};
use crate::{
    failure::{internal, invalid, of_launch, of_start},
    launch::{Job, Launched, Launcher, Size, Step, Streams},
};

/// What a command's words and variables may come to.
const MAX_JOB: usize = 2 << 20;
/// What is remembered of a command's words.
const MAX_WORDS: usize = 8 << 10;
const MAX_NOTE: usize = 16 << 10;
/// The most output of one stream.
const MAX_OUTPUT: u64 = 64 << 20;
/// How long a program may take to be started.
const PATIENCE: Duration = Duration::from_secs(30);

/// What every start needs.
#[derive(Debug)]
pub(crate) struct Starter {
    pub(crate) launcher: Launcher,
    pub(crate) table: Table,
    pub(crate) home: String,
    /// `KEY=VALUE` of every guest.
    pub(crate) env: Vec<String>,
}

/// What a terminal is called by programs if nothing else is said: what most understand.
const USUAL_TERMINAL: &str = "TERM=xterm-256color";

/// Starts a process, with a terminal if there is a size, and returns its number once its program
/// runs.
///
/// Dropping the future before it returns may leave the process running.
pub(crate) async fn start(
    starter: &Arc<Starter>,
    ask: Start,
    terminal: Option<Size>,
) -> Result<u64, Failure> {
    let mut job = job(starter, &ask)?;
    if terminal.is_some() {
        job.terminal = true;
        if !job.env.iter().any(|variable| variable.starts_with("TERM=")) {
            job.env.push(USUAL_TERMINAL.to_owned());
        }
    }
    let streams = terminal.map_or(Streams::Pipes { stdin: ask.stdin }, Streams::Terminal);
    let begun = Instant::now();
    let deadline = ask.timeout_ms.and_then(|ms| begun.checked_add(Duration::from_millis(ms)));
    let limit = ask.output.min(MAX_OUTPUT);
    let starter = Arc::clone(starter);
    // Of its own, so that a host that hangs up leaves nothing half done.
    let work = tokio::spawn(async move {
        let place = starter.table.place()?;
        let launch = starter.launcher.launch(&job, streams).await;
        let mut launched = launch.map_err(|cause| of_launch(terminal.is_some(), &cause))?;
        let directory = ask.cwd.as_deref().unwrap_or("of the sandbox");
        started(&mut launched, (&job.argv[0], directory), deadline).await?;

        let (asks, asked) = mpsc::channel(16);
        let (input, feeder) = match launched.stdin.take() {
            Some(pipe) => {
                let (sender, inputs) = mpsc::channel(16);
                (Some(sender), Some(tokio::spawn(input::feed(pipe, inputs)).abort_handle()))
            }
            None => (None, None),
        };
        let memory = (shortened(ask.argv), ask.note);
        let screen = terminal.zip(launched.terminal.take());
        let screen = screen.map(|(size, terminal)| Screen::new(size, terminal));
        let id = starter.table.enter(place, memory, asks, input, screen);
        let until = Until { begun, deadline, limit };
        tokio::spawn(Run::new(Arc::clone(&starter), id, launched, until, asked, feeder).drive());
        Ok(id)
    });
    work.await.unwrap_or_else(|_| Err(internal("the start was given up")))
}

/// Returns when the program runs, or why it never will. A deadline that passes first counts as
/// running: it ends the process as any other.
async fn started(
    launched: &mut Launched,
    (program, directory): (&str, &str),
    deadline: Option<Instant>,
) -> Result<(), Failure> {
    let patience = Instant::now() + PATIENCE;
    let until = deadline.map_or(patience, |deadline| deadline.min(patience));
    let mut told = Vec::new();
    match timeout_at(until, launched.error.read_to_end(&mut told)).await {
        Err(_) if until < patience => Ok(()),
        Err(_) => Err(internal("the process did not start in time")),
        Ok(Err(_)) => Err(internal("the process could not be started")),
        Ok(Ok(0)) => Ok(()),
        Ok(Ok(_)) => Err(match Step::told(&told) {
            Some((step, cause)) => of_start(program, directory, step, &cause),
            None => internal("the process could not be started"),
        }),
    }
}

fn job(starter: &Starter, ask: &Start) -> Result<Job, Failure> {
    if ask.argv.first().is_none_or(String::is_empty) {
        return Err(invalid("there is no program to run"));
    }
    let variables = starter.env.iter().chain(&ask.env);
    let strings = ask.argv.iter().chain(variables.clone()).chain(&ask.cwd);
    if strings.clone().any(|string| string.contains('\0')) {
        return Err(invalid("an argument, variable or directory holds a NUL"));
    }
    if strings.map(|string| string.len() + 1).sum::<usize>() > MAX_JOB {
        return Err(invalid("the arguments and variables are too long"));
    }
    if ask.note.len() > MAX_NOTE {
        return Err(invalid("the note is too long"));
    }
    let mut env: Vec<String> = Vec::new();
    for variable in variables {
        let Some((name, _)) = variable.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(invalid("a variable has no name"));
        };
        let same = |other: &String| other.split_once('=').is_some_and(|(other, _)| other == name);
        match env.iter().position(same) {
            Some(index) => env[index].clone_from(variable),
            None => env.push(variable.clone()),
        }
    }
    let directory = match ask.cwd.as_deref() {
        None | Some("") => starter.home.clone(),
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("{}/{path}", starter.home),
    };
    Ok(Job { argv: ask.argv.clone(), env, directory, terminal: false })
}

/// As many of the words as are worth remembering.
fn shortened(mut argv: Vec<String>) -> Vec<String> {
    let mut room = MAX_WORDS;
    argv.retain_mut(|word| {
        let mut end = word.len().min(room);
        while !word.is_char_boundary(end) {
            end -= 1;
        }
        let kept = room > 0;
        room = room.saturating_sub(word.len() + 24);
        word.truncate(end);
        word.shrink_to_fit();
        kept
    });
    argv.shrink_to_fit();
    argv
}
