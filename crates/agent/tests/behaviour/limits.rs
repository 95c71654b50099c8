//! What ends processes against their will, and what cannot be escaped.

use atoll_agent_protocol::message::{
    Cause, OfPath, OfProcess, Rlimit, Signal, User, request::Call,
};

use crate::support::{
    Agent, answer, command, eventually, is_root, read_number, runs, shell, within,
};

#[tokio::test]
async fn too_much_output_ends_the_process() {
    let agent = Agent::new().await;
    let mut start = shell("yes");
    start.output = 100_000;

    let finished = agent.run(start).await;

    assert_eq!(finished.stdout.len(), 100_000);
    assert_eq!(finished.ended.cause(), Cause::OutputLimit);
    assert!(finished.ended.truncated);
}

#[tokio::test]
async fn output_of_exactly_the_limit_is_fine_and_a_byte_more_is_not() {
    let agent = Agent::new().await;
    let mut exact = shell("printf 12345; exit 5");
    exact.output = 5;
    let mut more = shell("printf 123456; exit 5");
    more.output = 5;

    let exact = agent.run(exact).await;
    let more = agent.run(more).await;

    assert_eq!((exact.ended.cause(), exact.ended.exit_code), (Cause::Itself, Some(5)));
    assert_eq!(more.ended.cause(), Cause::OutputLimit);
    assert_eq!(more.stdout, b"12345");
}

#[tokio::test]
async fn killing_ends_daemons_too() {
    let agent = Agent::new().await;
    let line = "(setsid sh -c 'echo $$ > one; (setsid sh -c \"echo \\$\\$ > two; exec sleep 1000\" &) ; \
                exec sleep 1000' </dev/null >/dev/null 2>&1 &); while :; do sleep 0.01; done";
    let process = agent.start(shell(line)).await.unwrap();
    let (one, two) = (agent.home().join("one"), agent.home().join("two"));
    eventually("both daemons run", || read_number(&one).is_some() && read_number(&two).is_some())
        .await;

    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();

    assert_eq!(agent.wait(process).await.cause(), Cause::Killed);
    for path in [one, two] {
        assert!(!runs(read_number(&path).unwrap()), "{path:?} is left");
    }
}

#[tokio::test]
async fn a_timeout_ends_all_there_is_by_then() {
    let agent = Agent::new().await;
    let line = "trap '' TERM INT HUP; (setsid sh -c 'echo $$ > daemon; exec sleep 1000' &); \
                while :; do sleep 0.01; done";
    let mut start = shell(line);
    start.timeout_ms = Some(1500);

    let finished = agent.run(start).await;

    assert_eq!(finished.ended.cause(), Cause::Timeout);
    assert_eq!(finished.ended.signal, Some(9));
    assert!(finished.ended.duration_us >= 1_500_000);
    // On a very busy machine the daemon may not have been started by then.
    if let Some(pid) = read_number(&agent.home().join("daemon")) {
        eventually("the daemon is gone", || !runs(pid)).await;
    }
}

#[tokio::test]
async fn killing_ends_a_fork_bomb() {
    if !is_root() {
        return;
    }
    // A user of its own, also if these tests run twice: the limit counts all processes of one.
    let id = 1_000_000 + std::process::id();
    let user = User { uid: id, gid: id };
    let agent = Agent::with(|boot| {
        boot.user = Some(user);
        boot.rlimits = vec![Rlimit { resource: 6, value: 50 }];
    })
    .await;
    // Not a shell's, which gives up when it cannot fork.
    let bomb = "while (1) { fork; select undef, undef, undef, 0.01 }";
    let process = agent.start(command(&["/usr/bin/perl", "-e", bomb])).await.unwrap();
    eventually("it has grown", || processes_of(user.uid) > 30).await;

    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();

    assert_eq!(processes_of(user.uid), 0);
    assert_eq!(agent.shell("echo on").await.stdout, b"on\n");
}

#[tokio::test]
async fn killing_ends_a_process_that_has_stopped_itself() {
    let agent = Agent::new().await;
    let process = agent.start(shell("echo $$ > pid; kill -STOP $$; echo never")).await.unwrap();
    let path = agent.home().join("pid");
    eventually("it has begun", || read_number(&path).is_some()).await;

    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();
    let finished = agent.finish(process).await;

    assert_eq!(finished.ended.cause(), Cause::Killed);
    assert_eq!(finished.stdout, b"");
    assert!(!runs(read_number(&path).unwrap()));
}

#[tokio::test]
async fn killing_ends_what_keeps_forking() {
    let agent = Agent::new().await;
    // Each moves on to a new process as fast as it can, and leaves its parent and session.
    let line = "f() { setsid sh -c \"$1\" \"$1\" \"$1\" & exit; }; s='sh -c \"$1\" \"$1\" \"$1\" & \
                echo . >> beats; exit'; sh -c \"$s\" \"$s\" \"$s\"; sleep 1000";
    let process = agent.start(shell(line)).await.unwrap();
    let beats = agent.home().join("beats");
    let size = || std::fs::metadata(&beats).map_or(0, |data| data.len());
    eventually("it forks on and on", || size() > 40).await;

    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();
    let ended = size();

    assert_eq!(agent.shell("sleep 0.2; echo on").await.stdout, b"on\n");
    assert_eq!(size(), ended, "nothing of it is left to write");
}

#[tokio::test]
async fn a_signal_that_stops_does_not_stop_the_others() {
    let agent = Agent::new().await;
    let process = agent.start(command(&["/bin/sleep", "1000"])).await.unwrap();

    agent.ask(Call::Signal(Signal { process, signal: libc::SIGSTOP })).await.unwrap();

    assert_eq!(agent.shell("echo on").await.stdout, b"on\n");
    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();
    assert_eq!(agent.finish(process).await.ended.cause(), Cause::Killed);
}

#[tokio::test]
async fn the_agent_ends_when_its_spawner_is_killed() {
    let mut agent = Agent::new().await;
    agent.start(shell("echo $$ > pid; exec sleep 1000")).await.unwrap();
    let path = agent.home().join("pid");
    eventually("it runs", || read_number(&path).is_some()).await;
    let spawner = children(agent.pid());
    assert_eq!(spawner.len(), 1);

    kill(spawner[0]);

    within(agent.mux.closed()).await;
    assert_eq!(agent.child.wait().unwrap().code(), Some(1));
    let pid = read_number(&path).unwrap();
    eventually("what it started is gone", || !runs(pid)).await;
}

#[tokio::test]
async fn a_killed_keeper_is_a_fault_and_leaves_nothing() {
    let agent = Agent::new().await;
    let process = agent.start(shell("echo $$ > pid; exec sleep 1000")).await.unwrap();
    let path = agent.home().join("pid");
    eventually("it runs", || read_number(&path).is_some()).await;
    let keeper = children(children(agent.pid())[0]);
    assert_eq!(keeper.len(), 1);

    kill(keeper[0]);

    let finished = agent.finish(process).await;
    assert_eq!(finished.ended.cause(), Cause::Fault);
    let pid = read_number(&path).unwrap();
    eventually("what it kept is gone", || !runs(pid)).await;
    assert_eq!(agent.shell("echo on").await.stdout, b"on\n");
}

#[tokio::test]
async fn nothing_outlives_the_agent() {
    let mut agent = Agent::new().await;
    agent.start(shell("setsid sh -c 'echo $$ > pid; exec sleep 1000' & exit")).await.unwrap();
    let path = agent.home().join("pid");
    eventually("it runs", || read_number(&path).is_some()).await;

    agent.child.kill().unwrap();
    agent.child.wait().unwrap();

    let pid = read_number(&path).unwrap();
    eventually("what it started is gone", || !runs(pid)).await;
}

#[tokio::test]
async fn descriptors_and_keepers_do_not_pile_up() {
    let agent = Agent::new().await;
    agent.shell("echo x > file").await;
    let spawner = children(agent.pid())[0];
    let open = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let path = "file".to_owned();
    eventually("its keeper is gone", || children(spawner).is_empty()).await;
    let before = (open(agent.pid()), open(spawner));

    for round in 0..60 {
        let mut start = shell("sleep 1000 & cat");
        start.stdin = true;
        let process = agent.start(start).await.unwrap();
        agent.start(command(&["/no/such/program"])).await.unwrap_err();
        let read = agent.open(Call::ReadFile(OfPath { path: path.clone() })).await;
        if round % 2 == 0 {
            within(answer(&read)).await.unwrap().unwrap();
        }
        agent.ask(Call::Kill(OfProcess { process })).await.unwrap();
    }

    eventually("keepers are gone", || children(spawner).is_empty()).await;
    let now = || (open(agent.pid()), open(spawner));
    eventually("all is closed", || now() == before).await;
}

/// How many processes of a user run.
fn processes_of(uid: u32) -> usize {
    use std::os::unix::fs::MetadataExt as _;

    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let owner = std::fs::metadata(format!("/proc/{pid}")).map(|data| data.uid());
        owner.is_ok_and(|owner| owner == uid) && runs(*pid)
    })
    .count()
}

/// Those whose parent a process is.
fn children(parent: u32) -> Vec<u32> {
    let tasks = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(tasks).unwrap();
    text.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
