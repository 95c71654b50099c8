//! Things to be timed, and the turns they take.

use std::{
    ffi::OsStr,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use crate::{atoll::Call, statistics::Summary};

/// Something that does the job once.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) way: Way,
}

/// How a subject does it.
#[derive(Debug)]
pub(crate) enum Way {
    /// A command that is started and waited for; `says` must be in its output.
    Command { words: Vec<String>, says: &'static str },
    /// A request to a running server.
    Call(Box<Call>),
}

impl Subject {
    pub(crate) fn command<I, S>(name: &'static str, words: I, says: &'static str) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let words = words.into_iter().map(|w| w.as_ref().to_string_lossy().into_owned()).collect();
        Self { name, way: Way::Command { words, says } }
    }

    async fn once(&self) -> Result<Duration> {
        let time = match &self.way {
            Way::Command { words, says } => command(words, says).await,
            Way::Call(call) => call.once().await,
        };
        time.with_context(|| format!("`{}` failed", self.name))
    }
}

async fn command(words: &[String], says: &str) -> Result<Duration> {
    let (program, arguments) = words.split_first().context("no program")?;
    let start = Instant::now();
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .context("start")?;
    let time = start.elapsed();
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {complaint}", output.status);
    ensure!(String::from_utf8_lossy(&output.stdout).contains(says), "it did not say `{says}`");
    Ok(time)
}

/// The same interpreter and file with nothing around it.
pub(crate) fn bare(python: &Path, program: &Path) -> Subject {
    Subject::command("bare python3 FILE", [python, program], "hello")
}

/// Runs every subject once a round, in an order that moves on by one, after one round that does
/// not count.
pub(crate) async fn take_turns(subjects: &mut [Subject], rounds: usize) -> Result<Vec<Summary>> {
    let mut times = vec![Vec::with_capacity(rounds); subjects.len()];
    for subject in subjects.iter() {
        subject.once().await?;
    }
    for round in 0..rounds {
        for turn in 0..subjects.len() {
            let next = (turn + round) % subjects.len();
            times[next].push(subjects[next].once().await?);
        }
    }
    Ok(subjects
        .iter()
        .zip(&times)
        .map(|(subject, times)| Summary::of(subject.name, times))
        .collect())
}
