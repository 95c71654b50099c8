//! What a sandbox may use: held, or refused.

use std::time::Duration;

use atoll_types::quantity::{Size, Span};

use super::{
    Stage,
    case::{CaseResult, broken, cases, check, fails, same, unless_refused},
    files::{content, put},
    scratch::Scratch,
};
use crate::{Command, ErrorKind, LimitHit, Limits, Reason, Spec, Strength};

cases![
    too_much_memory_is_told_as_such,
    memory_of_all_processes_counts_together,
    a_kill_within_enough_memory_is_no_oom,
    too_many_processes_are_refused,
    too_much_processor_time_ends_the_process,
    processor_time_of_a_spec_holds_for_each_process,
    processor_time_not_used_is_not_counted,
    half_a_processor_is_half_as_fast,
    open_files_are_limited,
    a_full_disk_is_told,
    a_file_larger_than_the_disk_is_refused,
    room_on_the_disk_comes_back,
    output_of_a_spec_holds_for_each_process,
    what_is_not_limited_is_not_limited,
    usage_is_told,
];

/// Processor time that a busy program has soon used up.
const LITTLE: Duration = Duration::from_millis(300);

async fn limited(stage: &Stage, what: &str, limits: Limits) -> Result<Scratch, super::Failure> {
    Scratch::asking(stage, what, Spec { limits, ..stage.spec() }).await
}

async fn too_much_memory_is_told_as_such(stage: Stage) -> CaseResult {
    let limits = Limits { memory: Some(Size(64 << 20)), ..Limits::default() };
    let scratch = limited(&stage, "memory", limits).await?;

    // It keeps the last line of what never ends and has none, so it holds as much as it may; were
    // nothing to stop it, it would not take all the host has.
    let outcome = scratch.sh("ulimit -v 1000000; exec tail /dev/zero").await?.outcome;

    same("reason", outcome.reason, Reason::Oom)?;
    check(outcome.limits_hit.contains(&LimitHit::Memory), || format!("{outcome:?}"))?;
    same("survived", outcome.sandbox_survived, true)?;
    same("after", scratch.text("echo alive").await?, "alive\n".into())
}

async fn memory_of_all_processes_counts_together(stage: Stage) -> CaseResult {
    let limits = Limits { memory: Some(Size(64 << 20)), ..Limits::default() };
    let scratch = limited(&stage, "memory", limits).await?;

    // Each alone would fit, and keeps what it has read until its input ends.
    let line = "for i in 1 2 3 4 5 6; do \
                (head -c 24M /dev/zero; sleep 5) | tail > /dev/null & done; wait; exit 0";
    let outcome = scratch.run(Command::shell(line).timeout(Duration::from_secs(10))).await?.outcome;

    check(outcome.limits_hit.contains(&LimitHit::Memory), || format!("{outcome:?}"))?;
    same("after", scratch.text("echo alive").await?, "alive\n".into())
}

async fn a_kill_within_enough_memory_is_no_oom(stage: Stage) -> CaseResult {
    let limits = Limits { memory: Some(Size(256 << 20)), ..Limits::default() };
    let scratch = limited(&stage, "memory", limits).await?;

    let outcome = scratch.sh("kill -9 $$").await?.outcome;

    same("reason", outcome.reason, Reason::Signaled)?;
    same("signal", outcome.signal, Some(9))?;
    same("limits hit", outcome.limits_hit, Vec::new())
}

async fn too_many_processes_are_refused(stage: Stage) -> CaseResult {
    let limits = Limits { pids: Some(24), ..Limits::default() };
    let scratch = limited(&stage, "pids", limits).await?;

    let line = "i=0; while [ $i -lt 100 ]; do sleep 300 & i=$((i+1)); done; echo all";
    let process = scratch.start(Command::shell(line)).await?;
    let output = scratch.finish(process).await?;

    same("stdout", super::scratch::text(&output.stdout), String::new())?;
    // Where it is graded weak, nobody may have seen it.
    let grades = stage.engine().probe().await?.grades;
    let grade = grades.iter().find(|grade| grade.limit == "pids");
    if grade.is_none_or(|grade| grade.strength == Strength::Full) {
        check(output.outcome.limits_hit.contains(&LimitHit::Pids), || format!("{output:?}"))?;
    }
    scratch.kill(process).await?;
    same("after", scratch.text("echo alive").await?, "alive\n".into())
}

async fn too_much_processor_time_ends_the_process(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "echo $$ > main; (while :; do :; done) & echo $! > other; while :; do :; done";

    let command = Command { cpu_time: Some(LITTLE), ..Command::shell(line) };
    let process = unless_refused("processor time", scratch.start(command).await)?;
    let outcome = scratch.finish(process).await?.outcome;

    same("reason", outcome.reason, Reason::Timeout)?;
    same("limits hit", outcome.limits_hit, vec![LimitHit::Cpu])?;
    scratch.until_gone("main").await?;
    scratch.until_gone("other").await
}

async fn processor_time_of_a_spec_holds_for_each_process(stage: Stage) -> CaseResult {
    let limits = Limits { cpu_time: Some(Span(LITTLE)), ..Limits::default() };
    let scratch = limited(&stage, "processor time", limits).await?;

    for _ in 0..2 {
        let outcome = scratch.sh("while :; do :; done").await?.outcome;
        same("reason", outcome.reason, Reason::Timeout)?;
        same("limits hit", outcome.limits_hit, vec![LimitHit::Cpu])?;
    }
    Ok(())
}

async fn processor_time_not_used_is_not_counted(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let command = Command { cpu_time: Some(LITTLE), ..Command::shell("sleep 1; exit 3") };
    let process = unless_refused("processor time", scratch.start(command).await)?;
    let outcome = scratch.finish(process).await?.outcome;

    same("reason", outcome.reason, Reason::Exited)?;
    same("exit code", outcome.exit_code, Some(3))
}

async fn half_a_processor_is_half_as_fast(stage: Stage) -> CaseResult {
    let limits = Limits { cpus: Some(0.25), ..Limits::default() };
    let scratch = limited(&stage, "cpus", limits).await?;

    // Two that are always busy, for two seconds: a quarter of a processor gives half a second;
    // a busy host gives less still. Unlimited, an idle one gives four.
    let line = "(while :; do :; done) & while :; do :; done";
    let outcome = scratch.run(Command::shell(line).timeout(Duration::from_secs(2))).await?.outcome;

    let allowed = outcome.duration.mul_f64(0.25) + Duration::from_millis(400);
    check(outcome.cpu_time <= allowed, || format!("took more than {allowed:?}: {outcome:?}"))
}

async fn open_files_are_limited(stage: Stage) -> CaseResult {
    let limits = Limits { open_files: Some(20), ..Limits::default() };
    let scratch = limited(&stage, "open files", limits).await?;

    same("limit", scratch.text("ulimit -Sn; ulimit -Hn").await?, "20\n20\n".into())?;

    let many = "perl -e 'for (1..100) { open(my $f, \"<\", \"/dev/null\") or last; push @all, $f }
        print scalar @all'";
    let opened = scratch.text(many).await?;
    check(opened.parse().is_ok_and(|count: u32| count < 20), || format!("opened {opened}"))
}

async fn a_full_disk_is_told(stage: Stage) -> CaseResult {
    let limits = Limits { disk: Some(Size(16 << 20)), ..Limits::default() };
    let scratch = limited(&stage, "disk", limits).await?;

    let outcome = scratch.sh("head -c 64M /dev/zero > big || exit 7").await?.outcome;

    same("exit code", outcome.exit_code, Some(7))?;
    check(outcome.limits_hit.contains(&LimitHit::Disk), || format!("{outcome:?}"))?;
    let size: u64 = scratch.text("stat -c %s big").await?.trim_end().parse().unwrap_or(u64::MAX);
    check(size <= 16 << 20, || format!("the file has {size} bytes"))
}

async fn a_file_larger_than_the_disk_is_refused(stage: Stage) -> CaseResult {
    let limits = Limits { disk: Some(Size(16 << 20)), ..Limits::default() };
    let scratch = limited(&stage, "disk", limits).await?;
    put(&scratch, "file", "old").await?;

    let large = scratch.files().write("file", content(vec![0; 32 << 20])).await;

    fails("write", ErrorKind::Exhausted, large)?;
    same("old content", scratch.text("cat file").await?, "old".into())?;
    same("what is there", scratch.text("ls -A").await?, "file\n".into())
}

async fn room_on_the_disk_comes_back(stage: Stage) -> CaseResult {
    let limits = Limits { disk: Some(Size(16 << 20)), ..Limits::default() };
    let scratch = limited(&stage, "disk", limits).await?;

    for _ in 0..3 {
        scratch.text("head -c 12M /dev/zero > big && rm big").await?;
    }
    put(&scratch, "big", vec![0; 12 << 20]).await
}

async fn output_of_a_spec_holds_for_each_process(stage: Stage) -> CaseResult {
    let limits = Limits { output: Some(Size(1000)), ..Limits::default() };
    let scratch = limited(&stage, "output", limits).await?;

    for _ in 0..2 {
        let output = scratch.sh("yes").await?;
        same("reason", output.outcome.reason, Reason::OutputLimit)?;
        same("kept", output.stdout.len(), 1000)?;
    }
    let less = Command { output: Some(10), ..Command::shell("yes") };
    same("less", scratch.run(less).await?.stdout.len(), 10)
}

async fn what_is_not_limited_is_not_limited(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let output = scratch.sh("head -c 200M /dev/zero | tail -c 128M | wc -c").await?;

    same("stdout", super::scratch::text(&output.stdout), format!("{}\n", 128 << 20))?;
    same("limits hit", output.outcome.limits_hit, Vec::new())
}

async fn usage_is_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::new(["sleep", "300"])).await?;
    scratch.text("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done").await?;

    let usage = scratch.usage().await?;

    let counted = |figure: Option<u64>| figure.is_none_or(|figure| figure > 0);
    check(counted(usage.memory), || format!("no memory: {usage:?}"))?;
    check(counted(usage.pids), || format!("no processes: {usage:?}"))?;
    check(usage.cpu_time.is_none_or(|time| time > Duration::ZERO), || format!("{usage:?}"))?;
    if let (Some(used), Some(total)) = (usage.disk_used, usage.disk_total) {
        check(used <= total, || format!("more than there is: {usage:?}"))?;
    }
    match scratch.kill(process).await {
        Ok(()) => Ok(()),
        Err(error) => broken(error.to_string()),
    }
}
