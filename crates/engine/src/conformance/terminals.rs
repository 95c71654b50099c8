//! Processes with a terminal: that it is one, its size, its keys, its end.

use std::time::Duration;

use super::{
    Stage,
    case::{CaseResult, cases, check, fails, same},
    scratch::Scratch,
    screen::Screen,
};
use crate::{Command, ErrorKind, Isolation, MAX_TERMINAL_SIDE, Reason, TerminalSize};

cases![
    its_streams_are_a_terminal_of_that_size,
    without_one_there_is_none,
    it_is_its_own_controlling_terminal,
    its_name_is_known_to_programs,
    a_new_size_is_told_and_found,
    after_many_sizes_the_last_one_holds,
    a_size_that_is_none_is_invalid,
    a_terminal_has_no_limit_of_output,
    only_a_running_terminal_has_a_size,
    terminals_are_listed_with_their_size,
    keys_reach_the_foreground_and_nobody_else,
    in_raw_mode_keys_are_bytes,
    ending_the_input_is_a_key,
    input_nobody_reads_waits,
    its_end_does_not_wait_for_the_background,
    its_end_hangs_up,
    killing_it_leaves_nothing,
    a_timeout_ends_it,
    no_guest_types_for_another,
];

async fn its_streams_are_a_terminal_of_that_size(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size && echo error >&2";
    let process = scratch.start(Command::shell(line).with_terminal(37, 113)).await?;

    let mut screen = Screen::attach(&*scratch, process, 0).await?;
    let outcome = screen.end().await?;

    same("shown", screen.text(), "37 113\r\nerror\r\n".into())?;
    check(outcome.succeeded(), || format!("{outcome:?}"))?;
    same("truncated", outcome.truncated, false)
}

async fn without_one_there_is_none(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let line = "[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || (exec 3</dev/tty) 2>/dev/null && echo one";
    let output = scratch.run(Command::shell(format!("{line}; true")).with_stdin()).await?;

    same("stdout", output.stdout, Vec::new())
}

async fn it_is_its_own_controlling_terminal(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    // Its session is its own; the terminal's file belongs to it; `/dev/tty` is it.
    let line = "set -e; [ \"$(cut -d' ' -f6 /proc/$$/stat)\" = $$ ]; [ -O \"$(tty)\" ]
        echo there > /dev/tty; echo here > \"$(tty)\"";

    let mut screen = Screen::start(&scratch, line).await?;
    let outcome = screen.end().await?;

    same("shown", screen.text(), "there\r\nhere\r\n".into())?;
    check(outcome.succeeded(), || format!("{outcome:?}"))
}

async fn its_name_is_known_to_programs(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let mut other = Command::shell("echo $TERM").with_terminal(24, 80);
    other.env.insert("TERM".into(), "vt100".into());

    let mut usual = Screen::start(&scratch, "echo $TERM").await?;
    usual.end().await?;
    let mut other = Screen::attach(&*scratch, scratch.start(other).await?, 0).await?;
    other.end().await?;

    let shown = (usual.text(), other.text());
    same("shown", shown, ("xterm-256color\r\n".into(), "vt100\r\n".into()))
}

async fn a_new_size_is_told_and_found(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done";
    let mut screen = Screen::start(&scratch, line).await?;
    screen.until("ready").await?;

    scratch.resize(screen.process, TerminalSize { rows: 50, columns: 132 }).await?;
    let outcome = screen.end().await?;

    same("shown", screen.text(), "ready\r\n50 132\r\n".into())?;
    same("exit code", outcome.exit_code, Some(3))
}

async fn after_many_sizes_the_last_one_holds(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let mut screen = Screen::start(&scratch, "read line; stty size").await?;

    for number in 1..=300 {
        let size = TerminalSize { rows: number, columns: 301 - number };
        scratch.resize(screen.process, size).await?;
    }
    let most = TerminalSize { rows: MAX_TERMINAL_SIDE, columns: 1 };
    scratch.resize(screen.process, most).await?;
    scratch.write_stdin(screen.process, "\n".into()).await?;
    screen.end().await?;

    same("shown", screen.text(), "\r\n10000 1\r\n".into())
}

async fn a_size_that_is_none_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let screen = Screen::start(&scratch, "sleep 300").await?;
    let beyond = MAX_TERMINAL_SIDE + 1;

    for (rows, columns) in [(0, 0), (0, 80), (24, 0), (beyond, 80), (24, beyond), (65535, 65535)] {
        let what = format!("{rows} by {columns}");
        let command = Command::shell("true").with_terminal(rows, columns);
        fails(&what, ErrorKind::Invalid, scratch.start(command).await)?;
        let size = TerminalSize { rows, columns };
        fails(&what, ErrorKind::Invalid, scratch.resize(screen.process, size).await)?;
    }
    Ok(())
}

async fn a_terminal_has_no_limit_of_output(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let command = Command { output: Some(1000), ..Command::shell("true").with_terminal(24, 80) };

    fails("start", ErrorKind::Invalid, scratch.start(command).await)?;
    Ok(())
}

async fn only_a_running_terminal_has_a_size(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let size = TerminalSize { rows: 30, columns: 90 };
    let plain = scratch.start(Command::new(["sleep", "300"])).await?;
    let mut ended = Screen::start(&scratch, "true").await?;
    ended.end().await?;

    fails("without", ErrorKind::Invalid, scratch.resize(plain, size).await)?;
    fails("ended", ErrorKind::NotFound, scratch.resize(ended.process, size).await)?;
    let nobody = crate::ProcessId(123_456_789);
    fails("nobody", ErrorKind::NotFound, scratch.resize(nobody, size).await)?;
    Ok(())
}

async fn terminals_are_listed_with_their_size(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.start(Command::new(["sleep", "300"])).await?;
    let ended = Command::shell("true").with_terminal(10, 20);
    let mut ended = Screen::attach(&*scratch, scratch.start(ended).await?, 0).await?;
    ended.end().await?;
    let screen = Screen::start(&scratch, "sleep 300").await?;
    scratch.resize(screen.process, TerminalSize { rows: 31, columns: 91 }).await?;

    let listed = scratch.processes().await?.into_iter().map(|one| one.terminal).collect();

    let size = |rows, columns| Some(TerminalSize { rows, columns });
    same("listed", listed, vec![None, size(10, 20), size(31, 91)])
}

/// Has a child in a group of its own, which notes any signal, and tells of three of its own.
const TWO_GROUPS: &str = r#"
    my @names = qw(INT QUIT TSTP);
    my $child = fork;
    if (!$child) {
        setpgrp(0, 0);
        for (@names) { $SIG{$_} = sub { open my $file, ">", "hit" } }
        open my $file, ">", "up";
        close $file;
        sleep 1 while 1;
    }
    select undef, undef, undef, 0.02 until -e "up";
    $| = 1;
    my $count = 0;
    for my $name (@names) { $SIG{$name} = sub { $count++; print "got $name." } }
    print "ready.";
    while ($count < 3) { select undef, undef, undef, 0.05 }
    exit 7;
"#;

async fn keys_reach_the_foreground_and_nobody_else(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let command = Command::new(["perl", "-e", TWO_GROUPS]).with_terminal(24, 80);
    let mut screen = Screen::attach(&*scratch, scratch.start(command).await?, 0).await?;
    screen.until("ready.").await?;

    for (key, told) in [("\x03", "got INT."), ("\x1c", "got QUIT."), ("\x1a", "got TSTP.")] {
        scratch.write_stdin(screen.process, key.into()).await?;
        screen.until(told).await?;
    }

    same("exit code", screen.end().await?.exit_code, Some(7))?;
    scratch.text("[ ! -e hit ]").await?;
    Ok(())
}

async fn in_raw_mode_keys_are_bytes(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "stty raw -echo; printf ready; head -c 4 | od -An -tx1";
    let mut screen = Screen::start(&scratch, line).await?;
    screen.until("ready").await?;

    scratch.write_stdin(screen.process, "\x03\x04\x1a\x1c".into()).await?;
    screen.end().await?;

    same("shown", screen.text(), "ready 03 04 1a 1c\n".into())
}

async fn ending_the_input_is_a_key(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let mut screen = Screen::start(&scratch, "stty -echo; cat; echo once; cat; echo twice").await?;

    scratch.write_stdin(screen.process, "line\n".into()).await?;
    screen.until("line\r\n").await?;
    scratch.close_stdin(screen.process).await?;
    screen.until("once\r\n").await?;
    scratch.write_stdin(screen.process, "more\n".into()).await?;
    screen.until("more\r\n").await?;
    scratch.close_stdin(screen.process).await?;

    check(screen.end().await?.succeeded(), || screen.text())?;
    same("last", screen.text().ends_with("twice\r\n"), true)
}

async fn input_nobody_reads_waits(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "stty raw -echo; printf ready; until [ -e go ]; do sleep 0.05; done; head -c 1000000 | wc -c";
    let mut screen = Screen::start(&scratch, line).await?;
    screen.until("ready").await?;

    let writing = scratch.write_stdin(screen.process, vec![b'x'; 1_000_000].into());
    tokio::pin!(writing);
    let early = tokio::time::timeout(Duration::from_millis(500), &mut writing).await;
    check(early.is_err(), || format!("it did not wait: {early:?}"))?;
    same("meanwhile", scratch.text("echo else").await?, "else\n".into())?;
    scratch.text("echo > go").await?;
    writing.await?;

    screen.end().await?;
    same("shown", screen.text(), "ready1000000\n".into())
}

async fn its_end_does_not_wait_for_the_background(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    // It holds the terminal open, and does not mind being hung up.
    let line = "trap '' HUP; sleep 300 & echo $! > left; echo last; exit 4";
    let mut screen = Screen::start(&scratch, line).await?;
    let outcome = screen.end().await?;

    same("shown", screen.text(), "last\r\n".into())?;
    same("end", (outcome.reason, outcome.exit_code), (Reason::Exited, Some(4)))?;
    scratch.text("kill -0 $(cat left)").await?;
    scratch.kill(screen.process).await?;
    scratch.until_gone("left").await
}

async fn its_end_hangs_up(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    // Of the same group, which is the one in the foreground.
    let line = "sh -c 'trap \"echo > hung; exit\" HUP; echo > up; while :; do sleep 0.05; done' &
        until [ -e up ]; do sleep 0.02; done";

    let mut screen = Screen::start(&scratch, line).await?;
    check(screen.end().await?.succeeded(), || screen.text())?;

    scratch.until("[ -e hung ]").await
}

async fn killing_it_leaves_nothing(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "trap '' HUP INT; echo $$ > main; sleep 300 & echo $! > near
        (setsid sh -c 'echo $$ > far; exec sleep 300' >/dev/null 2>&1 </dev/null &)
        until [ -s far ]; do sleep 0.02; done; echo ready; wait";
    let mut screen = Screen::start(&scratch, line).await?;
    screen.until("ready").await?;

    scratch.kill(screen.process).await?;

    same("reason", screen.end().await?.reason, Reason::Cancelled)?;
    for member in ["main", "near", "far"] {
        scratch.until_gone(member).await?;
    }
    Ok(())
}

async fn a_timeout_ends_it(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let command = Command::shell("trap '' HUP; echo begun; exec sleep 300").with_terminal(24, 80);
    let process = scratch.start(command.timeout(Duration::from_millis(700))).await?;
    let mut screen = Screen::attach(&*scratch, process, 0).await?;

    same("reason", screen.end().await?.reason, Reason::Timeout)?;
    same("shown", screen.text(), "begun\r\n".into())
}

/// Tries to type at its own terminal as if it were its user.
const TYPE: &str = r#"
    my $key = "x";
    print ioctl(STDIN, 0x5412, $key) ? "typed" : "refused";
"#;

async fn no_guest_types_for_another(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let command = Command::new(["perl", "-e", TYPE]).with_terminal(24, 80);
    let mut screen = Screen::attach(&*scratch, scratch.start(command).await?, 0).await?;

    screen.end().await?;

    // Where nothing is isolated, the kernel's own setting decides.
    let isolated = stage.engine().isolation() != Isolation::None;
    check(!isolated || screen.text().ends_with("refused"), || screen.text())
}
