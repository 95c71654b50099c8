//! The agent as the first process of a sandbox.

use crate::support::{Agent, is_root};

#[tokio::test]
async fn guests_cannot_end_the_first_process() {
    if !is_root() {
        return;
    }
    let agent = Agent::first().await;
    let line = "cat /proc/1/comm; for s in HUP INT TERM KILL STOP ABRT SEGV; do \
                kill -$s 1 2>/dev/null && echo sent; done; kill -9 -1; echo tried";

    let finished = agent.shell(line).await;

    assert_eq!(finished.stdout, b"atoll-agent\ntried\n");
    assert_eq!(agent.shell("echo on").await.stdout, b"on\n");
}

#[tokio::test]
async fn orphans_do_not_stay_as_zombies() {
    if !is_root() {
        return;
    }
    let agent = Agent::first().await;
    agent.shell("for i in 1 2 3 4 5 6 7 8 9; do (setsid sh -c 'sleep 0.05' &); done").await;

    let line = "until [ -z \"$(grep -l ') Z' /proc/[0-9]*/stat 2>/dev/null)\" ] && \
                [ -z \"$(grep -l sleep /proc/[0-9]*/comm 2>/dev/null)\" ]; do sleep 0.02; done; echo none";
    let mut start = crate::support::shell(line);
    start.timeout_ms = Some(30_000);
    let finished = agent.run(start).await;

    assert_eq!(finished.stdout, b"none\n");
}

#[tokio::test]
async fn guests_see_no_variable_of_the_host_in_the_first_process() {
    if !is_root() {
        return;
    }
    let agent = Agent::first().await;

    let finished = agent.shell("cat /proc/1/environ; ls /proc/1/fd; cat /proc/1/maps").await;

    assert_eq!(finished.stdout, b"");
}
