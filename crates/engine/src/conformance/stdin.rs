//! Standard input.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Stage,
    case::{CaseResult, cases, check, fails, same},
    scratch::{Scratch, text},
};
use crate::{Command, ErrorKind, Reason};

cases![
    without_input_it_is_empty,
    input_is_read_to_its_end,
    large_input_goes_through,
    input_nobody_reads_does_not_delay_the_end,
    input_may_come_in_parts,
    writing_waits_for_the_reader,
    input_that_was_not_kept_open_is_invalid,
    input_that_is_closed_is_invalid,
    closing_twice_does_nothing,
];

async fn without_input_it_is_empty(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let output = scratch.sh("cat; echo end").await?;

    same("stdout", text(&output.stdout), "end\n".into())
}

async fn input_is_read_to_its_end(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    for input in [&b""[..], b"x", b"a\nb\0c\xff"] {
        let data = Some(Bytes::from_static(input));
        let output = crate::exec(scratch.sandbox(), Command::new(["cat"]), data).await?;
        same("stdout", output.stdout, input.to_vec())?;
    }
    Ok(())
}

async fn large_input_goes_through(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let input: Bytes = (0..1_500_000u32).flat_map(u32::to_le_bytes).collect();

    let output = crate::exec(scratch.sandbox(), Command::new(["cat"]), Some(input.clone())).await?;

    check(output.stdout == input, || format!("{} bytes came back", output.stdout.len()))
}

async fn input_nobody_reads_does_not_delay_the_end(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let input = Bytes::from(vec![0; 8 << 20]);

    let output =
        crate::exec(scratch.sandbox(), Command::shell("echo done; exit 3"), Some(input)).await?;

    same("stdout", text(&output.stdout), "done\n".into())?;
    same("reason", output.outcome.reason, Reason::Exited)?;
    same("exit code", output.outcome.exit_code, Some(3))
}

async fn input_may_come_in_parts(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "read a; echo $a > first; read b; echo \"$a $b\"";
    let process = scratch.start(Command::shell(line).with_stdin()).await?;

    scratch.write_stdin(process, "one\n".into()).await?;
    scratch.until("[ -s first ]").await?;
    scratch.write_stdin(process, "tw".into()).await?;
    scratch.write_stdin(process, "o\n".into()).await?;

    same("stdout", text(&scratch.finish(process).await?.stdout), "one two\n".into())
}

async fn writing_waits_for_the_reader(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "until [ -e go ]; do sleep 0.05; done; wc -c";
    let process = scratch.start(Command::shell(line).with_stdin()).await?;
    let sandbox = Arc::clone(scratch.sandbox());
    let input = Bytes::from(vec![0; 4 << 20]);

    let writing = sandbox.write_stdin(process, input);
    tokio::pin!(writing);
    // Nothing reads yet: however long this takes, the call must not return.
    let early = tokio::time::timeout(Duration::from_millis(500), &mut writing).await;
    check(early.is_err(), || format!("it did not wait: {early:?}"))?;
    scratch.text("echo > go").await?;
    writing.await?;
    scratch.close_stdin(process).await?;

    same("read", text(&scratch.finish(process).await?.stdout), format!("{}\n", 4 << 20))
}

async fn input_that_was_not_kept_open_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::new(["sleep", "300"])).await?;

    fails("write", ErrorKind::Invalid, scratch.write_stdin(process, "x".into()).await)?;
    Ok(())
}

async fn input_that_is_closed_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let command = Command::shell("cat; until [ -e go ]; do sleep 0.05; done").with_stdin();
    let process = scratch.start(command).await?;
    scratch.write_stdin(process, "seen".into()).await?;
    scratch.close_stdin(process).await?;

    fails("write", ErrorKind::Invalid, scratch.write_stdin(process, "x".into()).await)?;
    scratch.text("echo > go").await?;

    same("stdout", text(&scratch.finish(process).await?.stdout), "seen".into())
}

async fn closing_twice_does_nothing(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::new(["cat"]).with_stdin()).await?;

    scratch.close_stdin(process).await?;
    scratch.close_stdin(process).await?;

    same("exit code", scratch.finish(process).await?.outcome.exit_code, Some(0))
}
