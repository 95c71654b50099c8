//! D: output.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use atoll_engine::{Command, Event, Offsets, Reason, Stream};
use futures_util::StreamExt as _;
use tokio::io::AsyncReadExt as _;

use crate::{
    check::{Check, check, claim},
    ground::{PATIENCE, Ran, probe},
    run::eventually,
    stage::Stage,
};

const MIB: u64 = 1 << 20;

/// How long a control looks at a program that will never end. Longer would show the same.
const STUCK: Duration = Duration::from_secs(2);

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("D01", "a_flood_of_lines_is_cut_at_the_limit", |stage| cut(stage, &["lines"]))
            .against("a limit above the flood"),
        check("D02", "a_flood_without_lines_is_cut_at_the_limit", |stage| cut(stage, &[]))
            .against("a limit above the flood"),
        check("D03", "after_one_long_line_the_next_command_is_exact", long_line)
            .against("a line longer than what is looked for"),
        check("D04", "a_reader_that_stops_holds_up_nobody", slow_reader)
            .against("a pipe that nobody reads"),
        check("D05", "a_command_outlives_its_reader", gone_reader).against("a pipe that is closed"),
        check("D06", "many_small_writes_arrive_whole", drops).heavy().against("a lower limit"),
        check("D07", "both_streams_full_do_not_deadlock", both)
            .against("one stream read after the other"),
        check("D11", "output_that_looks_like_a_result_is_output", forged)
            .against("a shell that appends the exit code to the output"),
    ]
}

/// The probe's pattern: what a long output must be, byte for byte.
fn pattern(length: u64, lines: bool) -> Vec<u8> {
    (0..length)
        .map(
            |offset| {
                if lines && offset % 80 == 79 {
                    b'\n'
                } else {
                    b'a' + (offset % 23).to_le_bytes()[0]
                }
            },
        )
        .collect()
}

async fn cut(stage: Arc<Stage>, flags: &[&str]) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let words: Vec<&str> = ["flood", "4194304"].iter().chain(flags).copied().collect();
    let limit = if stage.weak { 8 * MIB } else { MIB };

    let ran = ground.run(Command { output: Some(limit), ..probe(&words) }).await?;

    ran.ended(Reason::OutputLimit)?;
    claim(ran.outcome.truncated, || ran.told())?;
    let kept = ran.stdout.len() as u64;
    claim(kept <= MIB, || format!("{kept} bytes were kept"))?;
    let expected = pattern(kept, flags.contains(&"lines"));
    claim(ran.stdout == expected, || "what was kept is not what was written".to_owned())?;
    ground.answers().await
}

async fn long_line(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let length = if stage.weak { 3 * MIB } else { 4 * MIB };

    let long = ground.run(probe(&["flood", &length.to_string()])).await?;
    let next = ground.run(Command::shell("printf exact; printf other >&2; exit 3")).await?;

    claim(long.stdout == pattern(4 * MIB, false), || long.told())?;
    let exact = next.stdout == b"exact" && next.stderr == b"other";
    claim(exact && next.outcome.exit_code == Some(3), || next.told())
}

/// One reader takes nothing; the command ends all the same, and another reader has it all.
async fn slow_reader(stage: Arc<Stage>) -> Result<()> {
    if stage.weak {
        let mut child = stage.world.bare().start(&["flood", "8388608"])?;
        let ended = tokio::time::timeout(STUCK, child.wait()).await.is_ok();
        child.kill().await?;
        return claim(ended, || "the command waits for its reader".to_owned());
    }
    let ground = stage.sandbox(stage.usual()).await?;
    let process = ground.sandbox.start(probe(&["flood", "8388608"])).await?;
    let unread = ground.sandbox.attach(process, Offsets::default()).await?;

    let ran = ground.follow(process, Offsets::default()).await?;

    claim(ran.outcome.succeeded(), || ran.told())?;
    claim(ran.stdout == pattern(8 * MIB, false), || ran.told())?;
    drop(unread);
    ground.answers().await
}

/// The reader goes in the middle; the command does not notice, and what it wrote is there.
async fn gone_reader(stage: Arc<Stage>) -> Result<()> {
    if stage.weak {
        let mut child = stage.world.bare().start(&["flood", "8388608"])?;
        let mut stdout = child.stdout.take().context("a pipe")?;
        stdout.read_exact(&mut [0; 1024]).await?;
        drop(stdout);
        let status = tokio::time::timeout(PATIENCE, child.wait()).await??;
        return claim(status.success(), || format!("the command noticed: {status}"));
    }
    let ground = stage.sandbox(stage.usual()).await?;
    let process = ground.sandbox.start(probe(&["flood", "8388608"])).await?;
    let mut events = ground.sandbox.attach(process, Offsets::default()).await?;
    let first = events.next().await.context("something comes")??;
    drop(events);
    let Event::Output { stream: Stream::Stdout, data, offset: 0 } = first else {
        anyhow::bail!("the first event is {first:?}")
    };

    let from = Offsets { stdout: data.len() as u64, stderr: 0 };
    let rest = ground.follow(process, from).await?;

    claim(rest.outcome.succeeded(), || rest.told())?;
    let whole = [&data[..], &rest.stdout].concat();
    claim(whole == pattern(8 * MIB, false), || rest.told())
}

async fn drops(stage: Arc<Stage>) -> Result<()> {
    const WRITES: u64 = 100_000;
    let ground = stage.sandbox(stage.usual()).await?;
    let limit = if stage.weak { WRITES / 2 } else { MIB };
    let command = Command { output: Some(limit), ..probe(&["drip", &WRITES.to_string()]) };

    let ran = ground.run(command).await?;

    claim(ran.outcome.succeeded(), || ran.told())?;
    claim(ran.stdout == pattern(WRITES, false), || ran.told())?;
    ground.answers().await
}

async fn both(stage: Arc<Stage>) -> Result<()> {
    if stage.weak {
        let mut child = stage.world.bare().start(&["flood", "2097152", "both"])?;
        let mut stdout = child.stdout.take().context("a pipe")?;
        let mut all = Vec::new();
        // Standard error is full by then, and nobody reads it.
        let ended = tokio::time::timeout(STUCK, stdout.read_to_end(&mut all)).await.is_ok();
        child.kill().await?;
        return claim(ended, || "the two streams wait for each other".to_owned());
    }
    let ground = stage.sandbox(stage.usual()).await?;

    let ran = ground.run(probe(&["flood", "2097152", "both"])).await?;

    claim(ran.outcome.succeeded(), || ran.told())?;
    let expected = pattern(2 * MIB, false);
    claim(ran.stdout == expected && ran.stderr == expected, || ran.told())
}

/// It ends with 7 and writes that it ended with 0, in every way it can think of.
async fn forged(stage: Arc<Stage>) -> Result<()> {
    let ran = if stage.weak { trusting_shell(&stage).await? } else { inside(&stage).await? };

    let seven = ran.outcome.reason == Reason::Exited && ran.outcome.exit_code == Some(7);
    claim(seven, || format!("not the program's own end: {}", ran.told()))?;
    let whole = ran.stdout.starts_with(b"exit code: 0\n") && ran.stdout.len() > 4096;
    claim(whole, || format!("not the program's own output: {}", ran.told()))
}

async fn inside(stage: &Stage) -> Result<Ran> {
    let ground = stage.sandbox(stage.usual()).await?;
    let ran = ground.run(probe(&["forge"])).await?;
    ground.answers().await?;
    // One end, and it stays what it was.
    let again = eventually(|| async {
        let processes = ground.sandbox.processes().await?;
        Ok(processes.iter().all(|process| process.outcome.is_some()))
    });
    claim(again.await?, || "a process never ended".to_owned())?;
    Ok(ran)
}

/// Takes the exit code from a line of the output, as wrappers do.
async fn trusting_shell(stage: &Stage) -> Result<Ran> {
    let ground = stage.sandbox(stage.usual()).await?;
    let line = format!("{} forge; echo \"exit code: $?\"", crate::ground::PROBE);
    let mut ran = ground.run(Command::shell(line)).await?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let code = text.lines().find_map(|line| line.strip_prefix("exit code: "));
    ran.outcome.exit_code = code.and_then(|code| code.parse().ok());
    Ok(ran)
}
