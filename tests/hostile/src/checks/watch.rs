//! E10: looking at a tree in which more happens than anybody can be told.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use atoll_engine::{Change, Changes, Limits};
use atoll_types::quantity::Size;
use futures_util::StreamExt as _;

use crate::{
    check::{Check, check, claim},
    ground::PATIENCE,
    stage::{Stage, Yard, usual},
};

const NAIVE: &str = "a watcher that keeps everything and promises everything";

/// What happens while nobody reads, and the most that may be kept of it.
const FILES: usize = 40_000;
const KEPT: usize = 30_000;

/// More directories than one watch may have.
const DIRECTORIES: usize = 17_000;

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("E10", "changes_nobody_reads_are_kept_in_part_and_told_as_lost", flood)
            .against(NAIVE),
        check("E10", "a_tree_too_large_to_be_watched_is_told_as_such", wide).against(NAIVE),
    ]
}

fn limits() -> Limits {
    Limits { memory: None, disk: Some(Size(512 << 20)), ..usual() }
}

/// Everything that is told of what has happened. Its end is a mark that is made last; where changes
/// were lost, so may be the mark, and another one, made then, must be told.
async fn told(yard: &Yard, mut changes: Changes) -> Result<Vec<Change>> {
    yard.shell("echo > seen/mark").await?;
    let (mut told, mut last) = (Vec::new(), "/mark");
    let reading = async {
        while let Some(change) = changes.next().await {
            let change = change?;
            if change == Change::Overflow {
                yard.shell("echo > seen/again").await?;
                last = "/again";
            }
            let over = matches!(&change, Change::Created { path, .. } | Change::Written { path }
                if path.ends_with(last));
            told.push(change);
            if over {
                return Ok(());
            }
        }
        anyhow::bail!("it ended before the mark was told")
    };
    let read = tokio::time::timeout(PATIENCE, reading).await;
    claim(read.is_ok(), || format!("{} changes are told, and not the last one", told.len()))?;
    read.unwrap_or(Ok(())).map(|()| told)
}

/// Forty thousand files while nobody reads: what is kept is bounded, and that something is missing
/// is told. Afterwards the sandbox answers.
async fn flood(stage: Arc<Stage>) -> Result<()> {
    let yard = stage.yard(stage.spec(limits())).await?;
    yard.shell("mkdir seen").await?;
    let changes = yard.files().watch("seen", true).await?;

    // In a control it is enough that nothing is told as lost.
    let files = if stage.weak { 100 } else { FILES };
    yard.shell(&format!("cd seen && seq 1 {files} | xargs -n 4000 touch")).await?;
    let told = told(&yard, changes).await?;

    let overflow = told.contains(&Change::Overflow);
    claim(overflow && told.len() <= KEPT, || {
        format!("{} of {files} were kept, and overflow told: {overflow}", told.len())
    })?;
    match &yard {
        Yard::Inside(ground) => ground.answers().await,
        Yard::Naive(..) => Ok(()),
    }
}

/// What cannot be watched is said to be so, at once.
async fn wide(stage: Arc<Stage>) -> Result<()> {
    let yard = stage.yard(stage.spec(limits())).await?;
    let directories = if stage.weak { 100 } else { DIRECTORIES };
    yard.shell(&format!("mkdir seen && cd seen && seq 1 {directories} | xargs -n 4000 mkdir"))
        .await?;

    let watching = tokio::time::timeout(PATIENCE, yard.files().watch("seen", true)).await;
    let mut changes = watching.context("the watch does not begin")??;
    // A control has nothing to say; one look shows that.
    let wait = if stage.weak { Duration::from_secs(1) } else { PATIENCE };
    let first = tokio::time::timeout(wait, changes.next()).await;
    drop(changes);

    let said = matches!(first, Ok(Some(Ok(Change::Unwatched { .. }))));
    claim(said, || format!("the first thing told: {first:?}"))?;
    match &yard {
        Yard::Inside(ground) => ground.answers().await,
        Yard::Naive(..) => Ok(()),
    }
}
