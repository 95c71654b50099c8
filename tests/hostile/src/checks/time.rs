//! A: processor and time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use atoll_engine::{Command, LimitHit, Limits, Reason};

use crate::{
    check::{Check, check, claim},
    ground::{Ran, probe},
    stage::{Stage, usual},
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("A01", "a_busy_loop_ends_at_its_time", |stage| timed(stage, "spin"))
            .heavy()
            .against("no time limit"),
        check("A02", "an_idle_program_ends_at_its_time", |stage| timed(stage, "sleep"))
            .against("no time limit"),
        check("A03", "a_program_that_ignores_every_signal_ends_at_its_time", |stage| {
            timed(stage, "stubborn")
        })
        .against("no time limit"),
        check("A04", "many_busy_threads_get_no_more_than_their_share", quota)
            .heavy()
            .eventually("no share"),
        check("A05", "processor_time_of_short_children_is_added_up", added_up)
            .heavy()
            .against("no limit of processor time"),
        check("A06", "a_program_that_stops_itself_ends_at_its_time", |stage| {
            timed(stage, "stopped")
        })
        .against("no time limit"),
    ]
}

/// The program would go on for minutes; its time is one second. Without that, it goes on for one
/// second and ends by itself.
async fn timed(stage: Arc<Stage>, program: &str) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let command = if stage.weak {
        probe(&[program, "1"])
    } else {
        probe(&[program, "300"]).timeout(Duration::from_secs(1))
    };

    let ran = ground.run(command).await?;

    ran.ended(Reason::Timeout)?;
    claim(ran.outcome.sandbox_survived, || format!("the sandbox went too: {}", ran.told()))?;
    ground.quiet().await?;
    ground.answers().await
}

/// A twentieth of a processor, eight threads, four seconds. The share is small so that the control
/// gets more than it also on a machine that has fifty other things to do.
async fn quota(stage: Arc<Stage>) -> Result<()> {
    const SHARE: f64 = 0.05;
    let limits = stage.limits(Limits { cpus: Some(SHARE), ..usual() }, usual());
    let ground = stage.sandbox(stage.spec(limits)).await?;
    let used = async || -> Result<Duration> {
        ground.sandbox.usage().await?.cpu_time.context("this host cannot tell processor time")
    };
    let (before, start) = (used().await?, Instant::now());

    let ran = ground.run(probe(&["spin", "4", "8"])).await?;

    let (after, passed) = (used().await?, start.elapsed());
    anyhow::ensure!(ran.outcome.succeeded(), "{}", ran.told());
    let share = after.saturating_sub(before).as_secs_f64() / passed.as_secs_f64();
    claim(share <= SHARE * 1.5, || {
        format!("{share:.3} of a processor instead of {SHARE}, over {passed:?}")
    })
}

/// Half a minute in all, never more than a twentieth of a second in one process; one second is
/// allowed. The control, which ends by itself, burns two.
async fn added_up(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let command = probe(&["short-children", if stage.weak { "2" } else { "30" }]);
    let command = if stage.weak {
        command
    } else {
        Command { cpu_time: Some(Duration::from_secs(1)), ..command }
    };

    let ran: Ran = ground.run(command).await?;

    ran.ended(Reason::Timeout)?;
    claim(ran.outcome.limits_hit.contains(&LimitHit::Cpu), || ran.told())?;
    ground.quiet().await
}
