//! The output of terminals: leaving, coming back, and more of it than anybody keeps.

use std::time::Duration;

use super::{
    Stage,
    case::{CaseResult, broken, cases, check, same},
    scratch::Scratch,
    screen::Screen,
};
use crate::{Command, MAX_OUTPUT, Reason, SCROLLBACK};

cases![
    whoever_comes_back_sees_what_was_shown,
    another_daemon_takes_a_terminal_over,
    two_readers_see_the_same_and_both_may_type,
    a_flood_nobody_reads_is_kept_to_its_last_bytes,
    whoever_keeps_reading_misses_nothing,
    a_stopped_reader_of_a_terminal_holds_up_nobody,
    what_is_shown_right_before_the_end_is_complete,
];

async fn whoever_comes_back_sees_what_was_shown(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let mut screen =
        Screen::start(&scratch, "echo one; read a; echo two; read b; echo three").await?;
    let process = screen.process;
    screen.until("one\r\n").await?;
    let left_at = screen.next;
    drop(screen);

    // With nobody there.
    scratch.write_stdin(process, "a\n".into()).await?;
    let mut back = Screen::attach(&*scratch, process, 0).await?;
    back.until("two\r\n").await?;
    let mut rest = Screen::attach(&*scratch, process, left_at).await?;
    scratch.write_stdin(process, "b\n".into()).await?;
    back.end().await?;
    rest.end().await?;

    same("all of it", back.text(), "one\r\na\r\ntwo\r\nb\r\nthree\r\n".into())?;
    same("the rest", rest.text(), "a\r\ntwo\r\nb\r\nthree\r\n".into())
}

async fn another_daemon_takes_a_terminal_over(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "stty -echo; echo begun; read word; stty size; exit $word";
    let mut screen = Screen::start(&scratch, line).await?;
    screen.until("begun").await?;

    let Some(found) = stage.another_engine().attach(scratch.id()).await? else {
        return broken("another engine does not find the sandbox");
    };
    let listed = found.processes().await?;
    check(listed.iter().any(|one| one.terminal.is_some()), || format!("none of {listed:?}"))?;
    let mut other = Screen::attach(found.as_ref(), screen.process, 0).await?;
    other.until("begun").await?;
    let size = crate::TerminalSize { rows: 12, columns: 34 };
    found.resize(screen.process, size).await?;
    found.write_stdin(screen.process, "5\n".into()).await?;

    same("exit code", other.end().await?.exit_code, Some(5))?;
    same("shown", other.text(), "begun\r\n12 34\r\n".into())?;
    screen.end().await?;
    same("to the first", screen.text(), other.text())
}

async fn two_readers_see_the_same_and_both_may_type(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let mut one =
        Screen::start(&scratch, "stty -echo; echo up; read a; read b; echo $a $b").await?;
    let mut two = Screen::attach(&*scratch, one.process, 0).await?;
    one.until("up").await?;

    let another = stage.another_engine().attach(scratch.id()).await?;
    let Some(another) = another else { return broken("it is not found") };
    scratch.write_stdin(one.process, "left\n".into()).await?;
    another.write_stdin(one.process, "right\n".into()).await?;
    one.end().await?;
    two.end().await?;

    same("shown", one.text(), "up\r\nleft right\r\n".into())?;
    same("to the other", two.text(), one.text())
}

async fn a_flood_nobody_reads_is_kept_to_its_last_bytes(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    // More than any pipe may write.
    let length = MAX_OUTPUT + (4 << 20);
    let line = format!("head -c {length} /dev/zero; printf 'the end'; exit 3");
    let process = scratch.start(Command::shell(line).with_terminal(24, 80)).await?;

    let outcome = scratch.until_listed_end(process).await?;
    let mut screen = Screen::attach(&*scratch, process, 0).await?;
    screen.end().await?;

    same("end", (outcome.reason, outcome.exit_code), (Reason::Exited, Some(3)))?;
    same("truncated", outcome.truncated, true)?;
    same("its length", screen.next, length + 7)?;
    same("left out further on", screen.missing, 0)?;
    let kept = screen.seen.len() as u64;
    check((SCROLLBACK..2 * SCROLLBACK).contains(&kept), || format!("{kept} bytes are kept"))?;
    check(screen.seen.ends_with(b"the end"), || "the end is missing".into())
}

async fn whoever_keeps_reading_misses_nothing(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let length = 16 << 20;
    let line =
        format!("stty raw -echo; printf ready; head -c 1 >/dev/null; head -c {length} /dev/zero");
    let mut screen = Screen::start(&scratch, &line).await?;
    screen.until("ready").await?;

    scratch.write_stdin(screen.process, "x".into()).await?;
    let outcome = screen.end().await?;

    same("missing", (screen.first, screen.missing), (Some(0), 0))?;
    same("its length", screen.next, 5 + length)?;
    same("reason", outcome.reason, Reason::Exited)
}

async fn a_stopped_reader_of_a_terminal_holds_up_nobody(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let length = 8 << 20;
    let line =
        format!("stty raw -echo; printf ready; head -c 1 >/dev/null; head -c {length} /dev/zero");
    let mut stopped = Screen::start(&scratch, &line).await?;
    stopped.until("ready").await?;

    scratch.write_stdin(stopped.process, "x".into()).await?;
    // Longer than anyone is waited for, and much less than forever.
    let ended = scratch.until_listed_end(stopped.process);
    let outcome = tokio::time::timeout(Duration::from_secs(30), ended).await;

    let Ok(outcome) = outcome else { return broken("the process waits for a stopped reader") };
    same("reason", outcome?.reason, Reason::Exited)?;
    stopped.end().await?;
    same("where it ended", stopped.next, 5 + length)?;
    check(stopped.missing > 0, || "nothing is missing: all of it was kept".into())
}

async fn what_is_shown_right_before_the_end_is_complete(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    for _ in 0..20 {
        let line = "stty -opost; head -c 60000 /dev/zero; printf last";
        let mut screen = Screen::start(&scratch, line).await?;
        screen.end().await?;
        same("length", screen.next, 60_004)?;
        check(screen.seen.ends_with(b"last"), || "the last word is missing".into())?;
    }
    Ok(())
}
