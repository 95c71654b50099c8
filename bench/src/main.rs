//! Measures Atoll beside what one would use instead, in one run.
//!
//! A time taken alone says more about the machine than about the program, so every subject takes
//! its turn in every round and the results are ratios of medians. The order within a round is
//! rotated, so that nobody always goes first.

mod atoll;
mod bubblewrap;
mod docker;
mod machine;
mod report;
mod statistics;
mod subject;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Parser;

/// Run the same Python file bare, in bubblewrap, in Docker and in Atoll, taking turns.
#[derive(Debug, Parser)]
#[command(
    name = "atoll-bench",
    after_help = "Examples:\n  make bench\n  make bench ARGS='--rounds 100 --docker-image python:3.12-slim'"
)]
struct Arguments {
    /// Rounds; each subject runs once in each.
    #[arg(long, default_value_t = 30)]
    rounds: usize,

    /// The program to measure.
    #[arg(long, default_value = "target/release/atoll")]
    atoll: PathBuf,

    /// The Python that everybody runs; it must be one a sandbox can see.
    #[arg(long, default_value = "/usr/bin/python3")]
    python: PathBuf,

    /// An image with `python3` in it, to measure `docker run` and `docker exec` too.
    #[arg(long)]
    docker_image: Option<String>,

    /// Idle sessions over which the memory of one is averaged.
    #[arg(long, default_value_t = 20)]
    idle_sessions: usize,

    /// Write the figures there as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::complain(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<()> {
    let work = tempfile::tempdir()?;
    let program = work.path().join("hello.py");
    std::fs::write(&program, "print('hello from the island')\n")?;

    let server = atoll::Server::start(&arguments.atoll).await?;
    let mut subjects = vec![
        subject::bare(&arguments.python, &program),
        bubblewrap::nothing(),
        bubblewrap::python(&arguments.python, &program),
    ];
    if let Some(image) = &arguments.docker_image {
        subjects.extend(docker::subjects(image, &program)?);
    }
    subjects.extend(server.subjects(&arguments.atoll, &arguments.python, &program).await?);

    let times = subject::take_turns(&mut subjects, arguments.rounds).await?;
    drop(subjects);
    docker::clean();
    let footprint = server.footprint(arguments.idle_sessions).await?;
    server.stop().await?;

    let figures =
        report::Figures { machine: machine::facts(), rounds: arguments.rounds, times, footprint };
    report::print(&figures);
    if let Some(path) = arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&figures)?)?;
    }
    Ok(())
}
