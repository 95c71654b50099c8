//! Watches, and guests who would rather not have them.

use std::fs;

use atoll_agent_protocol::{
    message::{Change, ChangeKind, FailureKind, OfPath, Watch, request::Call, response::Answer},
    mux::Stream,
};

use crate::support::{Agent, answer, eventually, is_root, shell, within};

impl Agent {
    async fn watch(&self, path: &str) -> Stream {
        let call = Call::Watch(Watch { path: path.to_owned(), recursive: true });
        let stream = self.open(call).await;
        stream.finish();
        let begun = within(answer(&stream)).await.expect("an answer");
        assert!(matches!(begun, Ok(Answer::Done(_))), "{begun:?}");
        stream
    }
}

async fn next(stream: &Stream) -> Change {
    match within(answer(stream)).await {
        Some(Ok(Answer::Change(change))) => change,
        other => panic!("{other:?} is no change"),
    }
}

/// Reads until something of this kind, about this name, is told.
async fn until(stream: &Stream, kind: ChangeKind, name: &str) {
    loop {
        let change = next(stream).await;
        if change.kind() == kind && change.path.ends_with(name.as_bytes()) {
            return;
        }
    }
}

#[tokio::test]
async fn more_directories_than_can_be_watched_are_told() {
    let agent = Agent::new().await;
    for number in 0..17 {
        let directory = agent.home().join(format!("d/{number}"));
        fs::create_dir_all(&directory).unwrap();
        for number in 0..1000 {
            fs::create_dir(directory.join(number.to_string())).unwrap();
        }
    }

    let stream = agent.watch("d").await;

    assert_eq!(next(&stream).await.kind(), ChangeKind::Unwatched);
    // What is watched is watched as ever.
    fs::write(agent.home().join("d/new"), "").unwrap();
    until(&stream, ChangeKind::Created, "/d/new").await;
    // The other watches go without, and are told so.
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(agent.watch("d").await);
    }
    assert_eq!(next(&others[3]).await.kind(), ChangeKind::Unwatched);
}

#[tokio::test]
async fn a_watch_that_is_given_up_leaves_nothing() {
    // Only root may look at the agent's descriptors.
    if !is_root() {
        return;
    }
    let agent = Agent::new().await;
    let held = || {
        let all = fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap();
        let names = all.filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
        names.filter(|name| name.to_string_lossy().contains("inotify")).count()
    };

    let mut watches = Vec::new();
    for _ in 0..16 {
        watches.push(agent.watch(".").await);
    }
    let call = Call::Watch(Watch { path: ".".to_owned(), recursive: false });
    let refused = agent.ask(call).await.unwrap_err();

    assert_eq!((refused.kind(), held()), (FailureKind::Exhausted, 16));
    drop(watches);
    eventually("all are let go", || held() == 0).await;
    agent.watch(".").await;
}

#[tokio::test]
async fn a_storm_grows_nothing_and_holds_up_nobody() {
    let agent = Agent::new().await;
    fs::create_dir_all(agent.home().join("d/t")).unwrap();
    fs::write(agent.home().join("d/a"), "").unwrap();
    let mut unread = Vec::new();
    for _ in 0..4 {
        unread.push(agent.watch("d").await);
    }
    let line = r#"cd d; perl -e 'for (1..1500) {
        mkdir("x"); mkdir("x/y"); rename("x", "t/z"); rename("t/z", "x"); rmdir("x/y"); rmdir("x");
        for (1..20) { rename("a", "b" x 200); rename("b" x 200, "a") } }'"#;
    let storm = agent.start(shell(line)).await.unwrap();

    for _ in 0..50 {
        agent.ask(Call::Stat(OfPath { path: "d".to_owned() })).await.unwrap();
    }
    assert_eq!(agent.wait(storm).await.exit_code, Some(0));

    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 100 << 10, "the agent grew to {peak} KiB");
    until(&unread[0], ChangeKind::Overflow, "").await;
}

#[tokio::test]
async fn only_what_the_guest_may_read_is_watched() {
    use std::os::unix::fs::PermissionsExt as _;

    if !is_root() {
        return;
    }
    let agent = Agent::with_user().await;
    // These are root's.
    fs::create_dir_all(agent.home().join("d/closed")).unwrap();
    let closed = fs::Permissions::from_mode(0o700);
    fs::set_permissions(agent.home().join("d/closed"), closed).unwrap();

    let call = Call::Watch(Watch { path: "d/closed".to_owned(), recursive: false });
    let refused = agent.ask(call).await.unwrap_err();
    let stream = agent.watch("d").await;

    assert_eq!(refused.kind(), FailureKind::Denied);
    let first = next(&stream).await;
    assert_eq!(first.kind(), ChangeKind::Unwatched);
    assert!(first.path.ends_with(b"/d/closed"));
    fs::write(agent.home().join("d/closed/secret"), "").unwrap();
    fs::write(agent.home().join("d/open"), "").unwrap();
    assert!(next(&stream).await.path.ends_with(b"/d/open"));
}
