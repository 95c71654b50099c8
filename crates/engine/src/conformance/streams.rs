//! Output: every byte, in order, to everyone who asks.

use super::{
    Failure, Stage,
    case::{CaseResult, broken, cases, check, same},
    scratch::{Scratch, finish, some_output, text},
};
use crate::{Command, Event, LimitHit, MAX_OUTPUT, Offsets, Reason, Stream};
use futures_util::StreamExt as _;

cases![
    how_much_was_written_is_told,
    every_byte_value_survives,
    bytes_written_one_by_one_are_one_stream,
    both_streams_flooded_do_not_lock_up,
    output_right_before_the_end_is_complete,
    output_comes_while_the_process_runs,
    reading_begins_where_it_is_asked_to,
    two_readers_read_the_same,
    a_reader_that_stops_holds_up_nobody,
    a_reader_may_come_after_the_end,
    another_daemon_reads_from_the_beginning,
    another_daemon_reads_what_has_ended,
    more_output_than_allowed_ends_the_process,
    output_of_exactly_the_limit_is_whole,
    the_limit_is_of_each_stream,
    an_output_limit_ends_descendants_too,
    more_than_the_greatest_output_is_refused_or_ended,
];

async fn how_much_was_written_is_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "printf 12345; printf 123 >&2; until [ -e go ]; do sleep 0.05; done; printf 6";
    let process = scratch.start(Command::shell(line)).await?;
    let mut events = scratch.attach(process, Offsets::default()).await?;
    let mut seen = Offsets::default();
    while (seen.stdout, seen.stderr) != (5, 3) {
        match events.next().await.transpose()? {
            Some(Event::Output { stream: Stream::Stdout, data, .. }) => {
                seen.stdout += data.len() as u64;
            }
            Some(Event::Output { data, .. }) => seen.stderr += data.len() as u64,
            other => return broken(format!("no output but {other:?}")),
        }
    }

    let written = async || {
        let listed = scratch.processes().await?;
        let found = listed.into_iter().find(|listed| listed.id == process);
        Ok::<_, Failure>(found.map(|listed| listed.written))
    };
    same("while it runs", written().await?, Some(seen))?;
    scratch.text("touch go").await?;
    scratch.finish(process).await?;
    same("at its end", written().await?, Some(Offsets { stdout: 6, stderr: 3 }))
}

async fn every_byte_value_survives(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let bytes: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    super::files::put(&scratch, "bytes", bytes.clone()).await?;

    let output = scratch.sh("cat bytes; cat bytes >&2").await?;

    check(output.stdout == bytes, || format!("stdout changed: {} bytes", output.stdout.len()))?;
    check(output.stderr == bytes, || format!("stderr changed: {} bytes", output.stderr.len()))
}

async fn bytes_written_one_by_one_are_one_stream(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "i=0; while [ $i -lt 3000 ]; do printf a; printf b >&2; i=$((i+1)); done";

    let output = scratch.sh(line).await?;

    same("stdout", text(&output.stdout), "a".repeat(3000))?;
    same("stderr", text(&output.stderr), "b".repeat(3000))
}

async fn both_streams_flooded_do_not_lock_up(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let output =
        scratch.sh("head -c 4194304 /dev/zero & head -c 4194304 /dev/zero >&2; wait").await?;

    same("lengths", (output.stdout.len(), output.stderr.len()), (4 << 20, 4 << 20))?;
    same("reason", output.outcome.reason, Reason::Exited)
}

async fn output_right_before_the_end_is_complete(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    for _ in 0..20 {
        let output = scratch.sh("head -c 60000 /dev/zero; printf last >&2").await?;
        same("lengths", (output.stdout.len(), output.stderr.len()), (60_000, 4))?;
    }
    Ok(())
}

async fn output_comes_while_the_process_runs(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "printf early; until [ -e go ]; do sleep 0.05; done; printf late";
    let process = scratch.start(Command::shell(line)).await?;

    let mut events = scratch.attach(process, Offsets::default()).await?;
    // Were the output held back until the end, this would not return: nothing lets it go on yet.
    let early = some_output(&mut events).await?;
    scratch.text("echo > go").await?;

    check(b"early".starts_with(&early[..]), || format!("{early:?} came first"))?;
    same("whole", text(&scratch.finish(process).await?.stdout), "earlylate".into())
}

async fn reading_begins_where_it_is_asked_to(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::shell("printf 0123456789; printf abcdef >&2")).await?;
    scratch.finish(process).await?;

    for (stdout, stderr) in [(0, 0), (3, 0), (0, 5), (10, 6), (9, 1)] {
        let from = Offsets { stdout, stderr };
        let output = finish(&*scratch, process, from).await?;
        let expected = ("0123456789".get(to(stdout)..), "abcdef".get(to(stderr)..));
        let seen = (text(&output.stdout), text(&output.stderr));
        same("rest", (Some(&*seen.0), Some(&*seen.1)), expected)?;
    }
    Ok(())
}

fn to(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

async fn two_readers_read_the_same(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "i=0; while [ $i -lt 2000 ]; do echo $i; echo $i >&2; i=$((i+1)); done";
    let process = scratch.start(Command::shell(line)).await?;

    let (one, two) = tokio::join!(scratch.finish(process), scratch.finish(process));

    let (one, two) = (one?, two?);
    let seen = text(&one.stdout);
    check(seen.lines().map(str::parse).eq((0..2000).map(Ok)), || format!("not in order: {seen}"))?;
    check(one == two, || "the two saw different things".into())
}

async fn a_reader_that_stops_holds_up_nobody(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let length = 24 << 20;
    let line = format!("printf first; sleep 0.2; head -c {} /dev/zero", length - 5);
    let process = scratch.start(Command::shell(line)).await?;
    let mut stalled = scratch.attach(process, Offsets::default()).await?;
    let first = some_output(&mut stalled).await?;

    let output = scratch.finish(process).await?;
    same("the reader's length", output.stdout.len(), length)?;
    same("meanwhile", scratch.text("echo else").await?, "else\n".into())?;

    let mut late = first.len();
    while let Some(event) = stalled.next().await {
        match event? {
            Event::Output { data, .. } => late += data.len(),
            Event::Ended(_) => return same("the late reader's length", late, length),
        }
    }
    broken("the late reader saw no end")
}

async fn a_reader_may_come_after_the_end(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::shell("echo kept; exit 8")).await?;
    scratch.until_listed_end(process).await?;

    for _ in 0..2 {
        let output = scratch.finish(process).await?;
        same("stdout", text(&output.stdout), "kept\n".into())?;
        same("exit code", output.outcome.exit_code, Some(8))?;
    }
    Ok(())
}

async fn another_daemon_reads_from_the_beginning(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "echo begun; until [ -e go ]; do sleep 0.05; done; echo done; exit 5";
    let process = scratch.start(Command::shell(line)).await?;
    let mut events = scratch.attach(process, Offsets::default()).await?;
    some_output(&mut events).await?;

    let Some(found) = stage.another_engine().attach(scratch.id()).await? else {
        return broken("another engine does not find the sandbox");
    };
    let listed = found.processes().await?;
    same("listed", listed.iter().map(|one| one.id).collect(), vec![process])?;
    check(listed[0].outcome.is_none(), || format!("it runs: {listed:?}"))?;
    scratch.text("echo > go").await?;
    let output = finish(found.as_ref(), process, Offsets::default()).await?;

    same("stdout", text(&output.stdout), "begun\ndone\n".into())?;
    same("reason", output.outcome.reason, Reason::Exited)?;
    same("exit code", output.outcome.exit_code, Some(5))
}

async fn another_daemon_reads_what_has_ended(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::shell("echo kept; exit 8")).await?;
    scratch.finish(process).await?;

    let Some(found) = stage.another_engine().attach(scratch.id()).await? else {
        return broken("another engine does not find the sandbox");
    };
    let output = finish(found.as_ref(), process, Offsets::default()).await?;

    same("stdout", text(&output.stdout), "kept\n".into())?;
    same("exit code", output.outcome.exit_code, Some(8))
}

async fn more_output_than_allowed_ends_the_process(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    for line in ["yes", "yes >&2"] {
        let command = Command { output: Some(1000), ..Command::shell(line) };
        let output = scratch.run(command).await?;

        same("reason", output.outcome.reason, Reason::OutputLimit)?;
        same("kept", output.stdout.len() + output.stderr.len(), 1000)?;
        same("truncated", output.outcome.truncated, true)?;
        same("limits hit", output.outcome.limits_hit, vec![LimitHit::Output])?;
    }
    same("after", scratch.text("echo alive").await?, "alive\n".into())
}

async fn output_of_exactly_the_limit_is_whole(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let command = Command { output: Some(1000), ..Command::shell("head -c 1000 /dev/zero") };
    let output = scratch.run(command).await?;

    same("reason", output.outcome.reason, Reason::Exited)?;
    same("kept", output.stdout.len(), 1000)?;
    same("truncated", output.outcome.truncated, false)?;
    same("limits hit", output.outcome.limits_hit, Vec::new())
}

async fn the_limit_is_of_each_stream(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let line = "head -c 900 /dev/zero; head -c 900 /dev/zero >&2";
    let output = scratch.run(Command { output: Some(1000), ..Command::shell(line) }).await?;

    same("reason", output.outcome.reason, Reason::Exited)?;
    same("kept", (output.stdout.len(), output.stderr.len()), (900, 900))
}

async fn an_output_limit_ends_descendants_too(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "setsid sh -c 'echo $$ > far; exec sleep 300' >/dev/null 2>&1 &
        until [ -s far ]; do sleep 0.02; done; yes";

    let command = Command { output: Some(1000), ..Command::shell(line) };
    let outcome = scratch.run(command).await?.outcome;

    same("reason", outcome.reason, Reason::OutputLimit)?;
    scratch.until_gone("far").await
}

async fn more_than_the_greatest_output_is_refused_or_ended(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let command = Command { output: Some(MAX_OUTPUT + 1), ..Command::shell("echo small") };

    match scratch.start(command).await {
        Ok(process) => {
            same("stdout", text(&scratch.finish(process).await?.stdout), "small\n".into())
        }
        Err(error) => same("kind", error.kind(), crate::ErrorKind::Invalid),
    }
}
