//! Starting, following, feeding and signalling processes.

use atoll_agent_protocol::message::{
    Attach, Cause, FailureKind, Nothing, OfProcess, Signal, WriteStdin, request::Call,
    response::Answer,
};

use crate::support::{Agent, answer, command, eventually, read_number, runs, shell, within};

#[tokio::test]
async fn output_and_exit_code_come_back() {
    let agent = Agent::new().await;

    let finished = agent.shell("printf out; printf err >&2; exit 7").await;

    assert_eq!(finished.stdout, b"out");
    assert_eq!(finished.stderr, b"err");
    assert_eq!((finished.ended.exit_code, finished.ended.signal), (Some(7), None));
    assert_eq!(finished.ended.cause(), Cause::Itself);
    assert!(!finished.ended.truncated);
}

#[tokio::test]
async fn every_exit_code_is_exact() {
    let agent = Agent::new().await;

    for code in [0, 1, 2, 126, 127, 128, 137, 255] {
        let finished = agent.shell(&format!("exit {code}")).await;
        assert_eq!(finished.ended.exit_code, Some(code));
    }
}

#[tokio::test]
async fn a_signal_of_its_own_is_told_as_one() {
    let agent = Agent::new().await;

    let finished = agent.shell("kill -SEGV $$").await;

    assert_eq!((finished.ended.exit_code, finished.ended.signal), (None, Some(11)));
    assert_eq!(finished.ended.cause(), Cause::Itself);
}

#[tokio::test]
async fn programs_are_found_in_the_path() {
    let agent = Agent::new().await;

    let finished = agent.run(command(&["echo", "a b", "c"])).await;

    assert_eq!(finished.stdout, b"a b c\n");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let agent = Agent::new().await;
    std::fs::write(agent.home().join("plain"), "echo no").unwrap();
    std::fs::write(agent.home().join("runnable"), "echo no").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(agent.home().join("runnable"), mode).unwrap();
    let mut elsewhere = shell("true");
    elsewhere.cwd = Some("no/such/place".to_owned());
    let mut nul = shell("true");
    nul.argv.push("a\0b".to_owned());
    let mut nameless = shell("true");
    nameless.env = vec!["=value".to_owned()];

    for (start, kind) in [
        (command(&["no-such-program-here"]), FailureKind::NotFound),
        (command(&["/no/such/program"]), FailureKind::NotFound),
        (command(&["./plain"]), FailureKind::Invalid),
        (command(&["./runnable"]), FailureKind::Invalid),
        (command(&["/"]), FailureKind::Invalid),
        (command(&[]), FailureKind::Invalid),
        (command(&[""]), FailureKind::Invalid),
        (elsewhere, FailureKind::Invalid),
        (nul, FailureKind::Invalid),
        (nameless, FailureKind::Invalid),
    ] {
        let argv = start.argv.clone();
        let failure = agent.start(start).await.unwrap_err();
        assert_eq!(failure.kind(), kind, "{argv:?}: {}", failure.message);
        assert!(!failure.message.contains(agent.home().to_str().unwrap()), "{}", failure.message);
    }
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_nothing_else() {
    let agent = Agent::new().await;
    let mut start = command(&["/usr/bin/env"]);
    start.env = vec!["OWN=1".to_owned(), "KEPT=command".to_owned()];

    let finished = agent.run(start).await;

    let text = String::from_utf8(finished.stdout).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["KEPT=command", "OWN=1", "PATH=/usr/bin:/bin"]);
}

#[tokio::test]
async fn commands_run_at_home_or_where_they_are_told() {
    let agent = Agent::new().await;
    std::fs::create_dir(agent.home().join("inner")).unwrap();
    let mut inner = shell("pwd");
    inner.cwd = Some("inner".to_owned());
    let mut root = shell("pwd");
    root.cwd = Some("/".to_owned());

    let home = agent.home().to_str().unwrap().to_owned();
    assert_eq!(agent.shell("pwd").await.stdout, format!("{home}\n").into_bytes());
    assert_eq!(agent.run(inner).await.stdout, format!("{home}/inner\n").into_bytes());
    assert_eq!(agent.run(root).await.stdout, b"/\n");
}

#[tokio::test]
async fn standard_input_is_empty_unless_kept_open() {
    let agent = Agent::new().await;

    let finished = agent.shell("cat; echo end").await;

    assert_eq!(finished.stdout, b"end\n");
}

#[tokio::test]
async fn what_is_written_to_standard_input_arrives_whole() {
    let agent = Agent::new().await;
    let mut start = command(&["/bin/cat"]);
    start.stdin = true;
    start.output = 4 << 20;
    let data: Vec<u8> = (0..=250).cycle().take(1_000_000).collect();

    let process = agent.start(start).await.unwrap();
    for part in data.chunks(300_000) {
        let part = part.to_vec().into();
        agent.ask(Call::WriteStdin(WriteStdin { process, data: part })).await.unwrap();
    }
    agent.ask(Call::CloseStdin(OfProcess { process })).await.unwrap();
    agent.ask(Call::CloseStdin(OfProcess { process })).await.unwrap();
    let finished = agent.finish(process).await;

    assert!(finished.stdout == data);
    assert_eq!(finished.ended.exit_code, Some(0));
}

#[tokio::test]
async fn closed_standard_input_takes_nothing() {
    let agent = Agent::new().await;
    let mut start = command(&["/bin/cat"]);
    start.stdin = true;
    let write = |process| Call::WriteStdin(WriteStdin { process, data: "x".into() });

    let never = agent.start(command(&["/bin/sleep", "1000"])).await.unwrap();
    let failure = agent.ask(write(never)).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Invalid);

    let closed = agent.start(start).await.unwrap();
    agent.ask(Call::CloseStdin(OfProcess { process: closed })).await.unwrap();
    let failure = agent.ask(write(closed)).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Invalid);

    let failure = agent.ask(write(9999)).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::NotFound);
}

#[tokio::test]
async fn input_nobody_reads_holds_up_no_other_call_and_ends_with_the_process() {
    let agent = Agent::new().await;
    let mut start = command(&["/bin/sleep", "1000"]);
    start.stdin = true;
    let process = agent.start(start).await.unwrap();
    let data = vec![0; 1 << 20].into();
    let stuck = agent.open(Call::WriteStdin(WriteStdin { process, data })).await;

    assert_eq!(agent.shell("echo free").await.stdout, b"free\n");
    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();

    let failure = within(answer(&stuck)).await.unwrap().unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Invalid);
}

#[tokio::test]
async fn readers_begin_wherever_they_like_and_see_the_same() {
    let agent = Agent::new().await;
    let process = agent.start(shell("seq 1 20000; echo problem >&2")).await.unwrap();

    let whole = agent.finish(process).await;
    let part = agent.finish_from(process, 50_000, 3).await;
    let beyond = agent.finish_from(process, 1 << 40, 1 << 40).await;

    assert_eq!(whole.stdout.len(), 108_894);
    assert_eq!(part.stdout, whole.stdout[50_000..]);
    assert_eq!(part.stderr, b"blem\n");
    assert_eq!((beyond.stdout.len(), beyond.stderr.len()), (0, 0));
    assert_eq!(beyond.ended, whole.ended);
}

#[tokio::test]
async fn binary_output_is_not_changed() {
    let agent = Agent::new().await;
    let line = r#"i=0; while [ $i -lt 256 ]; do printf "\\$(printf %o $i)"; i=$((i+1)); done"#;

    let finished = agent.shell(line).await;

    assert_eq!(finished.stdout, (0..=255).collect::<Vec<u8>>());
}

#[tokio::test]
async fn what_runs_on_in_the_background_does_not_delay_the_end() {
    let agent = Agent::new().await;

    let process = agent.start(shell("sleep 1000 & echo $! > pid; echo done")).await.unwrap();
    let finished = agent.finish(process).await;
    let left = read_number(&agent.home().join("pid")).unwrap();

    assert_eq!(finished.stdout, b"done\n");
    assert_eq!(finished.ended.exit_code, Some(0));
    assert!(runs(left), "what it left behind lives on");

    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();
    assert!(!runs(left), "killing one that has ended ends what it left");
    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();
}

#[tokio::test]
async fn a_background_writer_is_neither_heard_nor_harmed() {
    let agent = Agent::new().await;
    let line = "(while [ ! -e go ]; do sleep 0.01; done; seq 1 100000 && echo ok > fine) & echo $!";

    let finished = agent.shell(line).await;
    std::fs::write(agent.home().join("go"), "").unwrap();

    let fine = agent.home().join("fine");
    eventually("the writer ends well", || fine.exists()).await;
    assert_eq!(String::from_utf8(finished.stdout).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn a_hundred_at_once_all_run() {
    let agent = std::sync::Arc::new(Agent::new().await);

    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let agent = std::sync::Arc::clone(&agent);
            tokio::spawn(async move { agent.shell(&format!("echo {number}; exit {number}")).await })
        })
        .collect();

    for (number, task) in tasks.into_iter().enumerate() {
        let finished = within(task).await.unwrap();
        assert_eq!(finished.stdout, format!("{number}\n").into_bytes());
        assert_eq!(finished.ended.exit_code, i32::try_from(number).ok());
    }
}

#[tokio::test]
async fn signals_reach_the_process_until_it_has_ended() {
    let agent = Agent::new().await;
    let line = "trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.01; done";
    let process = agent.start(shell(line)).await.unwrap();
    // The trap is set once it has said so.
    let stream = agent.open(Call::Attach(Attach { process, ..Attach::default() })).await;
    let first = within(answer(&stream)).await.unwrap().unwrap();
    assert!(matches!(first, Answer::Output(output) if output.data == "ready\n"));

    agent.ask(Call::Signal(Signal { process, signal: 10 })).await.unwrap();
    let finished = agent.finish(process).await;
    let late = agent.ask(Call::Signal(Signal { process, signal: 10 })).await.unwrap_err();
    let wrong = agent.ask(Call::Signal(Signal { process, signal: 65 })).await.unwrap_err();

    assert_eq!(finished.stdout, b"ready\ncaught\n");
    assert_eq!(finished.ended.exit_code, Some(3));
    assert_eq!(late.kind(), FailureKind::NotFound);
    assert_eq!(wrong.kind(), FailureKind::Invalid);
}

#[tokio::test]
async fn processes_are_listed_oldest_first_with_their_notes() {
    let agent = Agent::new().await;
    let mut first = shell("exit 4");
    first.note = b"a note".to_vec();
    let one = agent.start(first).await.unwrap();
    agent.finish(one).await;
    let two = agent.start(command(&["/bin/sleep", "1000"])).await.unwrap();

    let stream = agent.open(Call::Processes(Nothing {})).await;
    stream.finish();
    let mut listed = Vec::new();
    while let Some(Ok(Answer::Process(process))) = within(answer(&stream)).await {
        listed.push(process);
    }

    assert_eq!(listed.iter().map(|process| process.process).collect::<Vec<_>>(), [one, two]);
    assert_eq!(listed[0].note, b"a note");
    assert_eq!(listed[0].ended.unwrap().exit_code, Some(4));
    assert_eq!(listed[1].argv, ["/bin/sleep", "1000"]);
    assert_eq!(listed[1].ended, None);
    assert!(listed[0].started_us <= listed[1].started_us);
}

#[tokio::test]
async fn another_host_sees_the_same_processes() {
    let mut agent = Agent::new().await;
    let process = agent.start(shell("echo hello; sleep 1000")).await.unwrap();

    agent.mux = agent.connect();
    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();
    let finished = agent.finish(process).await;

    assert_eq!(finished.ended.cause(), Cause::Killed);
}
