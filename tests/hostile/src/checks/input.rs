//! C15: standard input that nobody reads, closes or ends.

use std::{future::Future, process::Stdio, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use atoll_engine::{Command, Error, ErrorKind, ProcessId};
use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;

use crate::{
    check::{Check, check, claim},
    ground::{Ground, PATIENCE, probe},
    run::eventually,
    stage::Stage,
};

/// How long a control looks at a writer that will never end. Longer would show the same.
const STUCK: Duration = Duration::from_secs(2);

/// Writers at once, and what each has to say: far more than any pipe holds.
const WRITERS: usize = 40;
const MUCH: usize = 1 << 20;

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("C15", "a_program_that_echoes_its_input_does_not_deadlock", echo)
            .against("plain pipes, written first and read then"),
        check("C15", "input_that_nobody_reads_waits_and_holds_up_nobody_else", unread)
            .against("a writer that does not wait"),
        check("C15", "input_that_was_closed_inside_is_told_to_the_writer", closed)
            .against("a writer that does not wait"),
    ]
}

/// Eight mebibytes in, none of the output read meanwhile; then all of it is there.
async fn echo(stage: Arc<Stage>) -> Result<()> {
    let input: Bytes = (0..2_097_152_u32).flat_map(u32::to_le_bytes).collect();
    if stage.weak {
        let mut child = tokio::process::Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut stdin = child.stdin.take().context("a pipe")?;
        let written = tokio::time::timeout(STUCK, stdin.write_all(&input)).await.is_ok();
        child.kill().await?;
        return claim(written, || "input and output wait for each other".to_owned());
    }
    let ground = stage.sandbox(stage.usual()).await?;
    let process = ground.sandbox.start(Command::new(["cat"]).with_stdin()).await?;

    let written = tokio::time::timeout(PATIENCE, async {
        ground.sandbox.write_stdin(process, input.clone()).await?;
        ground.sandbox.close_stdin(process).await
    });
    let written = written.await;

    claim(matches!(written, Ok(Ok(()))), || format!("the writer is stuck: {written:?}"))?;
    let ran = ground.follow(process, atoll_engine::Offsets::default()).await?;
    claim(ran.outcome.succeeded() && ran.stdout == input, || ran.told())
}

/// Many write to one who never reads: all wait, the sandbox answers, others' input goes through,
/// and when the deaf one ends, every writer is told.
async fn unread(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let deaf = ground.sandbox.start(probe(&["sleep", "300"]).with_stdin()).await?;
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| tokio::spawn(write(&stage, &ground, deaf, Bytes::from(vec![0; MUCH]))))
        .collect();

    let other = ground.sandbox.start(Command::new(["cat"]).with_stdin()).await?;
    let input = Bytes::from_static(b"heard");
    let through = tokio::time::timeout(PATIENCE, async {
        ground.sandbox.write_stdin(other, input).await?;
        ground.sandbox.close_stdin(other).await
    });
    let through = through.await;
    claim(matches!(through, Ok(Ok(()))), || format!("others' input waits too: {through:?}"))?;
    let ran = ground.follow(other, atoll_engine::Offsets::default()).await?;
    claim(ran.stdout == b"heard", || ran.told())?;
    ground.answers().await?;

    let done = || writers.iter().filter(|writer| writer.is_finished()).count();
    if stage.weak {
        // It does not wait; but that it has returned may be known a moment later.
        eventually(|| async { Ok(done() > 0) }).await?;
    }
    let early = done();
    ground.sandbox.kill(deaf).await?;
    let mut answers = Vec::new();
    for writer in writers {
        let answer = tokio::time::timeout(PATIENCE, writer).await;
        answers.push(answer.map_err(|_| Error::internal("never told"))??);
    }

    claim(early == 0, || format!("{early} of {WRITERS} were told that nobody's input was read"))?;
    let told = answers.iter().all(typed);
    claim(told, || format!("how writers were told: {answers:?}"))?;
    ground.quiet().await
}

/// A program closes its own input and goes on.
async fn closed(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let line = "exec 0<&-; echo closed; exec sleep 300";
    let (process, _) = ground.start_and_hear(Command::shell(line).with_stdin()).await?;

    let mut answers = Vec::new();
    for _ in 0..3 {
        let writing = write(&stage, &ground, process, Bytes::from(vec![0; MUCH]));
        let answer = tokio::time::timeout(PATIENCE, writing).await;
        answers.push(answer.unwrap_or_else(|_| Err(Error::internal("never told"))));
    }

    ground.sandbox.kill(process).await?;
    let told = answers.iter().all(typed);
    claim(told, || format!("how the writer was told: {answers:?}"))?;
    ground.answers().await
}

fn typed(answer: &atoll_engine::Result<()>) -> bool {
    answer
        .as_ref()
        .is_err_and(|error| matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound))
}

/// Writes as the engine does, or, for the control, leaves the writing to somebody else.
fn write(
    stage: &Stage,
    ground: &Ground,
    process: ProcessId,
    data: Bytes,
) -> impl Future<Output = atoll_engine::Result<()>> + Send + 'static {
    let (sandbox, weak) = (Arc::clone(&ground.sandbox), stage.weak);
    async move {
        if weak {
            tokio::spawn(async move { sandbox.write_stdin(process, data).await });
            return Ok(());
        }
        sandbox.write_stdin(process, data).await
    }
}
