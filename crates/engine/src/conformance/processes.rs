//! Starting programs, and how their ends are told.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{
    Stage,
    case::{CaseResult, broken, cases, check, fails, same},
    scratch::{Scratch, text},
};
use crate::{Command, ErrorKind, ProcessId, Reason};

cases![
    a_program_runs_and_its_end_is_told,
    every_exit_code_is_told,
    arguments_arrive_as_they_were,
    a_program_is_found_in_the_path,
    a_missing_program_is_not_found,
    a_program_that_may_not_run_is_invalid,
    an_empty_command_is_invalid,
    the_working_directory_is_home_unless_said,
    a_working_directory_that_is_none_is_invalid,
    a_hundred_run_at_once,
    a_background_process_does_not_delay_the_end,
    what_is_left_behind_lives_on,
    orphans_do_not_end_the_sandbox,
    processes_are_listed_oldest_first,
    a_process_that_never_was_is_not_found,
    a_failure_says_nothing_about_the_host,
    a_dropped_exec_is_killed,
];

async fn a_program_runs_and_its_end_is_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let output = scratch.sh("echo out; echo err >&2; exit 3").await?;

    same("stdout", text(&output.stdout), "out\n".into())?;
    same("stderr", text(&output.stderr), "err\n".into())?;
    same("reason", output.outcome.reason, Reason::Exited)?;
    same("exit code", output.outcome.exit_code, Some(3))?;
    same("signal", output.outcome.signal, None)?;
    same("truncated", output.outcome.truncated, false)?;
    same("limits hit", output.outcome.limits_hit, Vec::new())?;
    same("survived", output.outcome.sandbox_survived, true)
}

async fn every_exit_code_is_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let scratch = &scratch;
    stream::iter(0..=255)
        .map(async |code| {
            let outcome = scratch.sh(&format!("exit {code}")).await?.outcome;
            same("reason", outcome.reason, Reason::Exited)?;
            same("exit code", outcome.exit_code, Some(code))
        })
        .buffer_unordered(8)
        .try_collect()
        .await
}

async fn arguments_arrive_as_they_were(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let words = ["", " ", "a b", "$HOME", "*", "'\"", "\\", "ä\u{1f41a}", "-n", "line\nline"];
    let long = "x".repeat(100_000);

    let mut command = Command::new(["printf", "%s\\0"]);
    command.argv.extend(words.iter().map(|word| (*word).to_owned()));
    command.argv.push(long.clone());
    let output = scratch.run(command).await?;

    let expected: String =
        words.iter().copied().chain([long.as_str()]).flat_map(|word| [word, "\0"]).collect();
    check(text(&output.stdout) == expected, || {
        format!("{} bytes came back, not {}", output.stdout.len(), expected.len())
    })
}

async fn a_program_is_found_in_the_path(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir bin; printf '#!/bin/sh\necho mine' > bin/tool; chmod 755 bin/tool").await?;
    let home = scratch.text("pwd").await?;

    let mut own = Command::new(["tool"]);
    own.env.insert("PATH".into(), format!("{}/bin:/usr/bin:/bin", home.trim_end()));

    same(
        "by path",
        text(&scratch.run(Command::new(["/bin/echo", "1"])).await?.stdout),
        "1\n".into(),
    )?;
    same("by name", text(&scratch.run(Command::new(["echo", "2"])).await?.stdout), "2\n".into())?;
    same("own", text(&scratch.run(own).await?.stdout), "mine\n".into())
}

async fn a_missing_program_is_not_found(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    for program in ["no-such-program", "/no/such/program", "./no-such-program"] {
        fails(program, ErrorKind::NotFound, scratch.start(Command::new([program])).await)?;
    }
    same("what was listed", scratch.processes().await?.len(), 0)
}

async fn a_program_that_may_not_run_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo 'echo ran' > plain; chmod 644 plain; mkdir folder").await?;

    for program in ["./plain", "./folder"] {
        fails(program, ErrorKind::Invalid, scratch.start(Command::new([program])).await)?;
    }
    Ok(())
}

async fn an_empty_command_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let none = Command::new(Vec::<String>::new());
    fails("no words", ErrorKind::Invalid, scratch.start(none).await)?;
    let nul = Command::new(["echo", "a\0b"]);
    fails("a NUL in a word", ErrorKind::Invalid, scratch.start(nul).await)?;
    Ok(())
}

async fn the_working_directory_is_home_unless_said(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let home = scratch.text("mkdir -p a/b; cd; pwd -P").await?;
    let home = home.trim_end();

    let relative = Command { cwd: Some("a/b".into()), ..Command::new(["pwd"]) };
    let absolute = Command { cwd: Some("/usr".into()), ..Command::new(["pwd"]) };

    same("by default", scratch.text("pwd -P").await?, format!("{home}\n"))?;
    same("relative", text(&scratch.run(relative).await?.stdout), format!("{home}/a/b\n"))?;
    same("absolute", text(&scratch.run(absolute).await?.stdout), "/usr\n".into())
}

async fn a_working_directory_that_is_none_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo > file").await?;

    for directory in ["missing", "file", "/no/such/directory"] {
        let command = Command { cwd: Some(directory.into()), ..Command::new(["pwd"]) };
        fails(directory, ErrorKind::Invalid, scratch.start(command).await)?;
    }
    Ok(())
}

async fn a_hundred_run_at_once(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    // None ends before all have started: they wait for a file that comes last.
    let mut started = Vec::new();
    for number in 0..100 {
        let line = format!("until [ -e go ]; do sleep 0.5; done; echo {number}; exit {number}");
        started.push((number, scratch.start(Command::shell(line)).await?));
    }

    scratch.text("echo > go").await?;

    for (number, process) in started {
        let output = scratch.finish(process).await?;
        same("stdout", text(&output.stdout), format!("{number}\n"))?;
        same("exit code", output.outcome.exit_code, Some(number))?;
    }
    Ok(())
}

async fn a_background_process_does_not_delay_the_end(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    // It keeps both streams open for longer than the case may take.
    let output = scratch.sh("sleep 300 & echo done").await?;

    same("stdout", text(&output.stdout), "done\n".into())?;
    same("reason", output.outcome.reason, Reason::Exited)
}

async fn what_is_left_behind_lives_on(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    scratch.text("sleep 300 >/dev/null 2>&1 & echo $! > one").await?;
    scratch.text("(setsid sleep 300 >/dev/null 2>&1 & echo $! > two)").await?;
    scratch.text("true").await?;

    scratch.text("kill -0 $(cat one) && kill -0 $(cat two)").await?;
    Ok(())
}

async fn orphans_do_not_end_the_sandbox(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let orphans = "i=0; while [ $i -lt 50 ]; do (true & true &); i=$((i+1)); done; echo made";

    same("stdout", scratch.text(orphans).await?, "made\n".into())?;

    same("after", scratch.text("echo alive").await?, "alive\n".into())
}

async fn processes_are_listed_oldest_first(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ended = scratch.start(Command::shell("exit 5")).await?;
    scratch.finish(ended).await?;
    let running = scratch.start(Command::new(["sleep", "300"])).await?;

    let listed = scratch.processes().await?;

    same("ids", listed.iter().map(|one| one.id).collect(), vec![ended, running])?;
    same("words", listed[0].argv.clone(), ["/bin/sh", "-c", "exit 5"].map(str::to_owned).into())?;
    same("words", listed[1].argv.clone(), ["sleep", "300"].map(str::to_owned).into())?;
    check(listed[0].started <= listed[1].started, || format!("out of order: {listed:?}"))?;
    let outcome = listed[0].outcome.as_ref().map(|outcome| (outcome.reason, outcome.exit_code));
    same("the ended one", outcome, Some((Reason::Exited, Some(5))))?;
    check(listed[1].outcome.is_none(), || format!("it runs: {:?}", listed[1]))
}

async fn a_process_that_never_was_is_not_found(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let nobody = ProcessId(123_456_789);
    let from = crate::Offsets::default();

    let attached = match scratch.attach(nobody, from).await {
        Ok(mut events) => {
            events.next().await.unwrap_or_else(|| Err(crate::Error::internal("nothing"))).map(drop)
        }
        Err(error) => Err(error),
    };
    fails("attach", ErrorKind::NotFound, attached)?;
    fails("signal", ErrorKind::NotFound, scratch.signal(nobody, 15).await)?;
    fails("kill", ErrorKind::NotFound, scratch.kill(nobody).await)?;
    fails("stdin", ErrorKind::NotFound, scratch.write_stdin(nobody, "x".into()).await)?;
    fails("close", ErrorKind::NotFound, scratch.close_stdin(nobody).await)?;
    Ok(())
}

async fn a_failure_says_nothing_about_the_host(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo x > plain; chmod 644 plain").await?;
    let elsewhere = Command { cwd: Some("missing".into()), ..Command::new(["pwd"]) };

    let files = scratch.files();
    let messages = [
        fails("start", ErrorKind::NotFound, scratch.start(Command::new(["missing"])).await)?,
        fails("start", ErrorKind::Invalid, scratch.start(Command::new(["./plain"])).await)?,
        fails("cwd", ErrorKind::Invalid, scratch.start(elsewhere).await)?,
        fails("read", ErrorKind::NotFound, files.read("missing").await)?,
        fails("read", ErrorKind::Invalid, files.read(".").await)?,
        fails("stat", ErrorKind::NotFound, files.stat("missing").await)?,
        fails("list", ErrorKind::NotFound, files.list("missing").await)?,
        fails("rename", ErrorKind::NotFound, files.rename("missing", "x").await)?,
        fails("remove", ErrorKind::NotFound, files.remove("missing").await)?,
    ];

    let directory = stage.state().display().to_string();
    for message in messages {
        check(!message.contains(&directory), || format!("tells a path of the host: {message}"))?;
        check(!message.is_empty(), || "an error without a message".into())?;
    }
    Ok(())
}

async fn a_dropped_exec_is_killed(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "echo $$ > main; setsid sleep 300 & echo $! > other; echo > ready; wait";

    let exec = crate::exec(scratch.sandbox(), Command::shell(line), None);
    tokio::select! {
        output = exec => return broken(format!("it ended by itself: {output:?}")),
        ready = scratch.until("[ -e ready ]") => ready?,
    }

    scratch.until_gone("main").await?;
    scratch.until_gone("other").await?;
    let processes = scratch.processes().await?;
    let Some(dropped) = processes.iter().find(|one| one.argv.iter().any(|word| word == line))
    else {
        return broken("it is not listed");
    };
    let outcome = scratch.until_listed_end(dropped.id).await?;
    same("reason", outcome.reason, Reason::Cancelled)?;
    check(outcome.duration > Duration::ZERO, || "it took no time".into())
}
