//! Signals, killing and time: who is hit, and who is not.

use std::time::Duration;

use super::{
    Failure, Stage,
    case::{CaseResult, broken, cases, check, fails, same},
    scratch::{Scratch, text},
};
use crate::{Command, ErrorKind, ProcessId, Reason};

cases![
    every_deadly_signal_is_told,
    a_signal_reaches_the_process,
    a_signal_does_not_reach_descendants,
    a_signal_to_what_has_ended_is_not_found,
    a_killed_process_was_cancelled,
    killing_ends_descendants_too,
    killing_what_has_ended_ends_what_it_left,
    killing_spares_other_processes,
    a_timeout_is_told,
    a_timeout_ends_descendants_too,
    a_timeout_ends_what_ignores_signals,
    a_timeout_ends_what_is_stopped,
    a_timeout_holds_with_nobody_attached,
    a_timeout_outlasts_the_daemon,
    a_process_within_its_time_is_not_ended,
];

const SOON: Duration = Duration::from_millis(700);

/// Starts a child that leaves its session and its parent, and one of each milder sort, and writes
/// their pids to `far`, `near` and `main`.
const FAMILY: &str = "echo $$ > main
    sleep 300 & echo $! > near
    (setsid sh -c 'echo $$ > far; exec sleep 300' >/dev/null 2>&1 </dev/null &)
    until [ -s far ]; do sleep 0.02; done
    echo ready > ready; ";

/// All of [`FAMILY`] is gone.
async fn the_family_is_gone(scratch: &Scratch) -> CaseResult {
    for member in ["main", "near", "far"] {
        scratch.until_gone(member).await?;
    }
    Ok(())
}

async fn start_family(scratch: &Scratch) -> Result<ProcessId, Failure> {
    let process = scratch.start(Command::shell(format!("{FAMILY} wait"))).await?;
    scratch.until("[ -e ready ]").await?;
    Ok(process)
}

async fn every_deadly_signal_is_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    // What is left out stops a process, lets it go on, or is nothing to it.
    let deadly = (1..=31).filter(|signal| ![17, 18, 19, 20, 21, 22, 23, 28].contains(signal));

    for signal in deadly {
        let outcome = scratch.sh(&format!("ulimit -c 0; kill -{signal} $$; exit 9")).await?.outcome;
        same(&format!("reason of {signal}"), outcome.reason, Reason::Signaled)?;
        same("signal", outcome.signal, Some(signal))?;
        same("exit code", outcome.exit_code, None)?;
    }
    Ok(())
}

async fn a_signal_reaches_the_process(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "trap 'exit 42' USR1; echo > ready; while :; do sleep 0.05; done";
    let process = scratch.start(Command::shell(line)).await?;
    scratch.until("[ -e ready ]").await?;

    scratch.signal(process, 10).await?;

    let outcome = scratch.finish(process).await?.outcome;
    same("reason", outcome.reason, Reason::Exited)?;
    same("exit code", outcome.exit_code, Some(42))
}

async fn a_signal_does_not_reach_descendants(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = start_family(&scratch).await?;

    scratch.signal(process, 9).await?;

    let outcome = scratch.finish(process).await?.outcome;
    same("reason", outcome.reason, Reason::Signaled)?;
    same("signal", outcome.signal, Some(9))?;
    scratch.text("kill -0 $(cat near) && kill -0 $(cat far)").await?;
    Ok(())
}

async fn a_signal_to_what_has_ended_is_not_found(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::shell("sleep 300 & exit 0")).await?;
    scratch.finish(process).await?;

    fails("signal", ErrorKind::NotFound, scratch.signal(process, 9).await)?;
    Ok(())
}

async fn a_killed_process_was_cancelled(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::shell("trap '' TERM INT; echo begun; sleep 300")).await?;

    scratch.kill(process).await?;

    let outcome = scratch.finish(process).await?.outcome;
    same("reason", outcome.reason, Reason::Cancelled)?;
    same("exit code", outcome.exit_code, None)?;
    same("survived", outcome.sandbox_survived, true)?;
    same("after", scratch.text("echo alive").await?, "alive\n".into())
}

async fn killing_ends_descendants_too(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = start_family(&scratch).await?;

    scratch.kill(process).await?;

    the_family_is_gone(&scratch).await
}

async fn killing_what_has_ended_ends_what_it_left(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::shell(format!("{FAMILY} exit 6"))).await?;
    same("exit code", scratch.finish(process).await?.outcome.exit_code, Some(6))?;
    scratch.text("kill -0 $(cat near) && kill -0 $(cat far)").await?;

    scratch.kill(process).await?;

    the_family_is_gone(&scratch).await?;
    same("its end stays", scratch.finish(process).await?.outcome.exit_code, Some(6))
}

async fn killing_spares_other_processes(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let other = scratch.start(Command::shell("until [ -e go ]; do sleep 0.05; done")).await?;
    let process = start_family(&scratch).await?;

    scratch.kill(process).await?;
    scratch.text("echo > go").await?;

    let outcome = scratch.finish(other).await?.outcome;
    check(outcome.succeeded(), || format!("the other one ended as {outcome:?}"))
}

async fn a_timeout_is_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let output = scratch.run(Command::shell("echo begun; exec sleep 300").timeout(SOON)).await?;

    same("stdout", text(&output.stdout), "begun\n".into())?;
    same("reason", output.outcome.reason, Reason::Timeout)?;
    same("exit code", output.outcome.exit_code, None)?;
    same("survived", output.outcome.sandbox_survived, true)?;
    check(output.outcome.duration >= SOON, || format!("early: {:?}", output.outcome))?;
    same("after", scratch.text("echo alive").await?, "alive\n".into())
}

async fn a_timeout_ends_descendants_too(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = format!("{FAMILY} wait");

    let outcome = scratch.run(Command::shell(line).timeout(Duration::from_secs(4))).await?.outcome;

    same("reason", outcome.reason, Reason::Timeout)?;
    scratch.text("[ -e ready ]").await?;
    the_family_is_gone(&scratch).await
}

async fn a_timeout_ends_what_ignores_signals(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "trap '' HUP INT QUIT TERM USR1 USR2; while :; do sleep 0.1; done";

    let outcome = scratch.run(Command::shell(line).timeout(SOON)).await?.outcome;

    same("reason", outcome.reason, Reason::Timeout)
}

async fn a_timeout_ends_what_is_stopped(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let outcome = scratch.run(Command::shell("kill -STOP $$").timeout(SOON)).await?.outcome;

    same("reason", outcome.reason, Reason::Timeout)
}

async fn a_timeout_holds_with_nobody_attached(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let process = scratch.start(Command::new(["sleep", "300"]).timeout(SOON)).await?;

    same("reason", scratch.until_listed_end(process).await?.reason, Reason::Timeout)
}

async fn a_timeout_outlasts_the_daemon(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let first = stage.another_engine();
    let Some(sandbox) = first.attach(scratch.id()).await? else {
        return broken("another engine does not find the sandbox");
    };

    let process = sandbox.start(Command::new(["sleep", "300"]).timeout(SOON)).await?;
    drop((sandbox, first));

    same("reason", scratch.finish(process).await?.outcome.reason, Reason::Timeout)
}

async fn a_process_within_its_time_is_not_ended(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let command = Command::shell("sleep 0.2; exit 4").timeout(Duration::from_mins(5));
    let outcome = scratch.run(command).await?.outcome;

    same("reason", outcome.reason, Reason::Exited)?;
    same("exit code", outcome.exit_code, Some(4))
}
