//! C: processes.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use atoll_engine::{ErrorKind, LimitHit, Limits, ProcessId};
use bytes::Bytes;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use crate::{
    check::{Check, check, claim},
    ground::{Ground, probe},
    run::eventually,
    stage::{Stage, usual},
    world::Weakness,
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("C01", "forks_stop_at_the_limit", |stage| bomb(stage, "forks"))
            .heavy()
            .against("no limit of processes"),
        check("C02", "threads_stop_at_the_limit", |stage| bomb(stage, "many-threads"))
            .heavy()
            .against("no limit of processes"),
        check("C03", "short_lived_processes_leave_none", churn)
            .heavy()
            .against("children that stay"),
        check("C04", "a_daemon_ends_with_the_command_that_was_ended", |stage| {
            descendants(stage, &["daemon", "300", "staying"], &["daemon", "300"])
        })
        .against("a command that ends by itself"),
        check("C05", "a_result_does_not_wait_for_those_who_hold_its_output", held_output)
            .against("a reader that waits for the end of the output"),
        check("C06", "a_disguised_daemon_ends_with_the_command_that_was_ended", |stage| {
            descendants(
                stage,
                &["daemon", "300", "disguised", "staying"],
                &["daemon", "300", "disguised"],
            )
        })
        .against("a command that ends by itself"),
        check("C07", "zombies_are_reaped", zombies).against("children that have not ended"),
        check("C08", "a_tree_that_forks_while_it_is_killed_ends", |stage| {
            descendants(stage, &["refork", "8", "300", "staying"], &["refork", "8", "300"])
        })
        .heavy()
        .against("a command that ends by itself"),
        check("C09", "a_process_number_used_again_is_never_signalled", reuse)
            .heavy()
            .against("a signal to the number"),
    ]
}

async fn bomb(stage: Arc<Stage>, program: &str) -> Result<()> {
    let limits = stage.limits(usual(), Limits { pids: None, ..usual() });
    let ground = stage.sandbox(stage.spec(limits)).await?;

    let ran = ground.run(probe(&[program, "120"])).await?;

    anyhow::ensure!(ran.outcome.succeeded(), "{}", ran.told());
    let told: Value = serde_json::from_slice(&ran.stdout)?;
    let most = 40 + stage.world.subject.slack();
    let made = told["made"].as_u64().unwrap_or(u64::MAX);
    claim(told["error"] == "EAGAIN" && made < most, || format!("with 40 allowed: {told}"))?;
    // Who counts, tells.
    if ground.sandbox.usage().await?.pids.is_some() {
        claim(ran.outcome.limits_hit.contains(&LimitHit::Pids), || ran.told())?;
    }
    ground.quiet().await?;
    ground.answers().await
}

async fn churn(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;

    let stay = if stage.weak { "3" } else { "0" };
    let told = ground.probe(&["churn", "3000", stay]).await?;

    anyhow::ensure!(told["made"].as_u64().is_some_and(|made| made >= 2990), "{told}");
    ground.quiet().await
}

async fn zombies(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;

    let kind = if stage.weak { "living" } else { "dead" };
    let told = ground.probe(&["zombies", "30", kind]).await?;

    anyhow::ensure!(told["made"] == 30, "{told}");
    ground.quiet().await
}

/// Ends the command and looks for what it left. A command that ended by itself may leave things,
/// which is what the control sees.
async fn descendants(stage: Arc<Stage>, ended: &[&str], by_itself: &[&str]) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    if stage.weak {
        ground.run(probe(by_itself)).await?;
        return ground.quiet().await;
    }
    let (process, _) = ground.start_and_hear(probe(ended)).await?;
    // The command, and what it made; who forks and ends all the time is not seen by every look.
    let made = eventually(|| async { Ok(ground.pids().await? >= 2) }).await?;
    anyhow::ensure!(made, "there is nothing to be ended");

    ground.sandbox.kill(process).await?;

    ground.quiet().await?;
    ground.answers().await
}

/// The result is there while somebody still holds the output.
async fn held_output(stage: Arc<Stage>) -> Result<()> {
    if stage.weak {
        return waits_for_output(&stage).await;
    }
    let ground = stage.sandbox(stage.usual()).await?;

    let ran = ground.run(probe(&["daemon", "300", "holding"])).await?;

    anyhow::ensure!(ran.outcome.succeeded(), "{}", ran.told());
    let alive = ground.pids().await?;
    claim(alive >= 1, || "the result came only when the holder was gone".to_owned())
}

async fn waits_for_output(stage: &Stage) -> Result<()> {
    let mut child = stage.world.bare().start(&["daemon", "2", "holding"])?;
    let mut stdout = child.stdout.take().context("a pipe")?;
    let mut text = String::new();
    stdout.read_to_string(&mut text).await?;
    child.wait().await?;
    let told: Value = serde_json::from_str(&text)?;
    let daemon = told["daemon"].as_i64().context("the daemon's number")?;
    // It closes its files a moment before it is gone.
    let gone = eventually(|| async {
        let line = std::fs::read_to_string(format!("/proc/{daemon}/stat")).unwrap_or_default();
        Ok(line.is_empty() || line.contains(") Z ") || line.contains(") X "))
    })
    .await?;
    claim(!gone, || "the result came only when the holder was gone".to_owned())
}

/// A process ends, another gets its number, then the first is signalled by its handle.
async fn reuse(stage: Arc<Stage>) -> Result<()> {
    // In the control the number is signalled by a neighbour, whom Landlock would hold back.
    let ground = stage.weakened(stage.usual(), &[Weakness::Landlock]).await?;
    let (first, pid) = ended_process(&ground).await?;
    let command = probe(&["reuse", &pid.to_string(), "60"]).with_stdin();
    let (second, _) = ground.start_and_hear(command).await?;
    let mut line = None;
    for _ in 0..10 {
        rewind(&stage, &ground, pid).await?;
        let wait = Duration::from_secs(5);
        if let Ok(heard) = tokio::time::timeout(wait, ground.hear(second, 1)).await {
            line = Some(heard?);
            break;
        }
    }
    let told: Value = serde_json::from_str(&line.context("the number never came again")?)?;
    anyhow::ensure!(told["reused"] == pid, "the number did not come again: {told}");

    if stage.weak {
        ground.shell(&format!("kill -9 {pid}")).await?;
    } else {
        for signal in [libc::SIGKILL, libc::SIGTERM] {
            let answer = ground.sandbox.signal(first, signal).await;
            let kind = answer.as_ref().map_err(atoll_engine::Error::kind);
            claim(kind == Err(ErrorKind::NotFound), || format!("the signal's answer: {answer:?}"))?;
        }
        ground.sandbox.kill(first).await?;
    }

    ground.sandbox.write_stdin(second, Bytes::from_static(b"\n")).await?;
    let ran = ground.follow(second, atoll_engine::Offsets::default()).await?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let told: Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
    claim(told["killed"] == false, || format!("an innocent process was hit: {text}"))
}

/// Makes the sandbox's next process have this number, instead of waiting for millions to pass.
async fn rewind(stage: &Stage, ground: &Ground, pid: i64) -> Result<()> {
    let first = stage.world.first_process(ground.sandbox.id()).context("its first process")?;
    let line = format!("echo {} > /proc/sys/kernel/ns_last_pid", pid - 1);
    let status = tokio::process::Command::new("nsenter")
        .args(["--pid", "--target", &first.to_string(), "/bin/sh", "-c", &line])
        .status()
        .await?;
    anyhow::ensure!(status.success(), "the numbers could not be rewound");
    Ok(())
}

async fn ended_process(ground: &Ground) -> Result<(ProcessId, i64)> {
    let process = ground.sandbox.start(probe(&["identity"])).await?;
    let ran = ground.follow(process, atoll_engine::Offsets::default()).await?;
    let told: Value = serde_json::from_slice(&ran.stdout)?;
    Ok((process, told["process"].as_i64().context("its number")?))
}
