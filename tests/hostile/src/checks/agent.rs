//! The agent outlives its guests: they cannot kill, stop, starve, limit or read it (C10, C11).

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use atoll_engine::{Limits, Reason};

use super::refused;
use crate::{
    check::{Broken, Check, check, claim},
    ground::{PATIENCE, probe},
    run::eventually,
    stage::{Stage, usual},
    world::Weakness,
};

const ROOT: [Weakness; 3] = [Weakness::Root, Weakness::Seccomp, Weakness::Landlock];
const WHAT: &str = "guests that are the agent's user";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("C10", "a_guest_cannot_signal_what_keeps_the_sandbox", signals).against(WHAT),
        check("C11", "a_guest_cannot_look_into_what_keeps_the_sandbox", peeks).against(WHAT),
        check("agent", "a_guest_cannot_limit_what_keeps_the_sandbox", limits).against(WHAT),
        check("agent", "a_guest_that_takes_everything_does_not_silence_it", starved)
            .heavy()
            .no_control("the weaker form, an agent among its guests, would fail only by chance"),
        check("agent", "a_guest_that_runs_out_of_memory_does_not_end_it", out_of_memory)
            .heavy()
            .no_control("whom the kernel kills among equals is its choice"),
    ]
}

const NO: [&str; 5] = ["EPERM", "EACCES", "ESRCH", "ENOENT", "ENOSYS"];

async fn signals(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &ROOT).await?;
    // With the weakness the probe may end its own keeper, and so nothing may be told at all.
    let told = match ground.probe(&["signal-strangers"]).await {
        Err(error) if stage.weak => return Err(Broken(format!("{error:#}")).into()),
        told => told?,
    };
    let mut told = told;
    told.as_object_mut().context("attempts")?.remove("terminate all");
    refused(&told, &NO)?;
    ground.answers().await
}

async fn peeks(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &ROOT).await?;
    refused(&ground.probe(&["peek-strangers"]).await?, &NO)?;
    ground.answers().await
}

async fn limits(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &ROOT).await?;
    let told = match ground.probe(&["limit-strangers"]).await {
        Err(error) if stage.weak => return Err(Broken(format!("{error:#}")).into()),
        told => told?,
    };
    refused(&told, &NO)?;
    ground.answers().await
}

/// Every process it may have, all its processor time; the agent still answers, and ends them.
async fn starved(stage: Arc<Stage>) -> Result<()> {
    let limits = Limits { cpus: Some(0.5), ..usual() };
    let ground = stage.sandbox(stage.spec(limits)).await?;
    let mut spinning = Vec::new();
    for _ in 0..3 {
        spinning.push(ground.sandbox.start(probe(&["spin", "300", "10"])).await?);
    }
    let full = eventually(|| async { Ok(ground.pids().await? >= 30) }).await?;
    anyhow::ensure!(full, "the guests did not start");

    let answers = async {
        ground.sandbox.files().list("/").await?;
        ground.sandbox.usage().await?;
        ground.sandbox.processes().await?;
        for process in &spinning {
            ground.sandbox.kill(*process).await?;
        }
        anyhow::Ok(())
    };
    let answered = tokio::time::timeout(PATIENCE, answers).await;

    claim(matches!(answered, Ok(Ok(()))), || format!("the agent is silent: {answered:?}"))?;
    ground.quiet().await?;
    ground.answers().await
}

/// Memory full of files, which no killing frees; then again by a program, several times.
async fn out_of_memory(stage: Arc<Stage>) -> Result<()> {
    let limits = Limits { disk: Some(atoll_types::quantity::Size(256 << 20)), ..usual() };
    let ground = stage.sandbox(stage.spec(limits)).await?;
    for round in 0..3 {
        let command = probe(&["fill", &format!("/tmp/full{round}"), "96"]);
        let ran = ground.run(command.timeout(Duration::from_secs(50))).await?;
        let ended = ran.outcome.reason;
        claim(ended != Reason::Lost && ran.outcome.sandbox_survived, || ran.told())?;
    }
    // The agent is there, and can make room again.
    for round in 0..3 {
        let removed = ground.sandbox.files().remove(&format!("/tmp/full{round}")).await;
        claim(
            removed.is_ok()
                || removed
                    .as_ref()
                    .is_err_and(|error| error.kind() == atoll_engine::ErrorKind::NotFound),
            || format!("{removed:?}"),
        )?;
    }
    let allocated = ground.run(probe(&["allocate", "160"])).await?;
    allocated.ended(Reason::Oom)?;
    ground.answers().await
}
