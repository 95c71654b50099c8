//! J: from one sandbox to another.

use std::{fs, sync::Arc};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::refused;
use crate::{
    check::{Check, check, claim},
    ground::{Ground, PROBE, probe},
    stage::Stage,
    world::Weakness,
};

pub(super) fn checks() -> Vec<Check> {
    let same = "one sandbox for both";
    vec![
        check("J01", "an_abstract_socket_is_not_heard_next_door", |stage| {
            heard(stage, &["abstract socket"], "ECONNREFUSED")
        })
        .against(same),
        check("J02", "shared_memory_and_queues_are_not_heard_next_door", |stage| {
            heard(stage, &["shared memory", "semaphore", "message queue", "posix queue"], "ENOENT")
        })
        .against(same),
        check("J03", "keyrings_are_refused", keys).against("no system call filter"),
        check("J05", "machine_sockets_are_refused", vsock).against("no system call filter"),
        check("J06", "files_in_common_places_are_not_heard_next_door", files).against(same),
        check("J07", "two_sandboxes_share_no_user_of_the_host", users).against(same),
    ]
}

/// Tells in one sandbox and listens in another, or, for the control, in the same.
async fn both(stage: &Stage) -> Result<(Value, Value)> {
    let token = format!("atoll{}", crate::canary::token()?);
    let one = stage.sandbox(stage.usual()).await?;
    if stage.weak {
        // One command for both: what two commands may do to each other is not the question.
        let line = format!(
            "mkfifo stay; {PROBE} tell {token} < stay > told & exec 3> stay; \
             until grep -qs files told; do :; done; {PROBE} hear {token}; cat told >&2; exec 3>&-; wait"
        );
        let ran = one.run(atoll_engine::Command::shell(line)).await?;
        let told = serde_json::from_slice(&ran.stderr).context("what was told")?;
        return Ok((told, serde_json::from_slice(&ran.stdout).context("what was heard")?));
    }
    let other = stage.sandbox(stage.usual()).await?;
    let (teller, line) = one.start_and_hear(probe(&["tell", &token]).with_stdin()).await?;
    let heard = other.probe(&["hear", &token]).await?;
    one.sandbox.close_stdin(teller).await?;
    Ok((serde_json::from_str(&line)?, heard))
}

async fn heard(stage: Arc<Stage>, kinds: &[&str], absent: &str) -> Result<()> {
    let (told, heard) = both(&stage).await?;
    for kind in kinds {
        // What cannot even be told here proves nothing.
        if told[*kind] != "ok" {
            stage.world.note(format!("{kind} cannot be made in a sandbox: {}", told[*kind]));
            continue;
        }
        claim(heard[*kind] == absent, || format!("{kind}: {} ({heard})", heard[*kind]))?;
    }
    Ok(())
}

async fn files(stage: Arc<Stage>) -> Result<()> {
    let (told, heard) = both(&stage).await?;
    let written = told["files"].as_array().context("files")?;
    anyhow::ensure!(written.iter().any(|answer| answer == "ok"), "no place can be written: {told}");
    claim(heard["files"].as_array().is_some_and(Vec::is_empty), || format!("{}", heard["files"]))
}

async fn keys(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &[Weakness::Seccomp]).await?;
    refused(&ground.probe(&["keys"]).await?, &["EPERM", "ENOSYS"])
}

async fn vsock(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &[Weakness::Seccomp]).await?;
    let mut told = ground.probe(&["sockets"]).await?;
    let attempts = told.as_object_mut().context("attempts")?;
    attempts.retain(|name, _| name.starts_with("socket 40 ") || name == "pair 40");
    anyhow::ensure!(attempts.len() == 5, "{attempts:?}");
    refused(&told, &["EPERM", "EACCES"])
}

/// The host's users of two sandboxes, as the host sees their processes.
async fn users(stage: Arc<Stage>) -> Result<()> {
    let one = stage.sandbox(stage.usual()).await?;
    let other = if stage.weak { one.clone() } else { stage.sandbox(stage.usual()).await? };
    let (first, second) = (range(&one).await?, range(&other).await?);
    let apart = first.end <= second.start || second.end <= first.start;
    claim(apart, || format!("{first:?} and {second:?}"))?;
    let people = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let taken: Vec<u32> =
        people.lines().filter_map(|line| line.split(':').nth(2)?.parse().ok()).collect();
    let shared = taken.iter().any(|user| first.contains(user) || second.contains(user));
    claim(!shared, || format!("{first:?} or {second:?} is somebody's on this host"))
}

async fn range(ground: &Ground) -> Result<std::ops::Range<u32>> {
    let told = ground.probe(&["posture"]).await?;
    let map = told["user_map"].as_str().context("a map")?;
    let words: Vec<u32> = map.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match words[..] {
        [_, first, count] => Ok(first..first.checked_add(count).context("a range")?),
        _ => anyhow::bail!("not one range: {map}"),
    }
}
