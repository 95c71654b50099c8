//! Terminals: whose they are, how many there may be, and that nothing is left of them.

use atoll_agent_protocol::message::{
    FailureKind, OfProcess, Resize, StartTerminal, TerminalSize, WriteStdin, request::Call,
    response::Answer,
};

use crate::support::{Agent, eventually, is_root, shell};

const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };

fn call(line: &str, size: TerminalSize) -> Call {
    Call::StartTerminal(StartTerminal { start: Some(shell(line)), size: Some(size) })
}

async fn start(agent: &Agent, line: &str) -> u64 {
    match agent.ask(call(line, SIZE)).await.unwrap() {
        Answer::Started(OfProcess { process }) => process,
        other => panic!("{other:?} answers a start"),
    }
}

/// Descriptors of the agent that lead to terminals.
fn open_terminals(agent: &Agent) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", agent.pid()))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| {
            let name = target.to_string_lossy();
            name.contains("ptmx") || name.starts_with("/dev/pts/")
        })
        .count()
}

#[tokio::test]
async fn a_terminal_belongs_to_the_guests_user() {
    if !is_root() {
        return;
    }
    let agent = Agent::with_user().await;

    let process = start(&agent, "stat -c '%u %g' \"$(tty)\"; ls /proc/self/fd").await;
    let finished = agent.finish(process).await;

    let text = String::from_utf8(finished.stdout).unwrap();
    assert!(text.starts_with("1000 1000\r\n"), "{text:?}");
    let numbers: Vec<_> = text.split_ascii_whitespace().skip(2).collect();
    assert_eq!(numbers, ["0", "1", "2", "3"], "the fourth is the one `ls` reads with");
}

#[tokio::test]
async fn a_guest_that_closes_its_ends_can_open_them_again() {
    let agent = Agent::new().await;
    let line = "exec </dev/null >/dev/null 2>&1; until [ -e go ]; do sleep 0.02; done
        echo back > /dev/tty";
    let process = start(&agent, line).await;

    std::fs::write(agent.home().join("go"), "").unwrap();

    assert_eq!(agent.finish(process).await.stdout, b"back\r\n");
}

#[tokio::test]
async fn nothing_is_left_of_a_terminal_whose_process_has_ended() {
    let agent = Agent::new().await;
    let before = open_terminals(&agent);
    let process = start(&agent, "trap '' HUP; sleep 1000 & exit 3").await;

    let finished = agent.finish(process).await;

    assert_eq!(finished.ended.exit_code, Some(3));
    eventually("its descriptors are closed", || open_terminals(&agent) == before).await;
    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();
}

#[tokio::test]
async fn there_is_an_end_to_terminals() {
    let agent = Agent::new().await;
    let mut last = 0;
    for _ in 0..64 {
        last = start(&agent, "read line").await;
    }

    let failure = agent.ask(call("true", SIZE)).await.unwrap_err();
    agent.ask(Call::WriteStdin(WriteStdin { process: last, data: "\n".into() })).await.unwrap();
    agent.finish(last).await;

    assert_eq!(failure.kind(), FailureKind::Exhausted, "{}", failure.message);
    // Its places are given back with its descriptors, a moment after the end is told.
    let begin = std::time::Instant::now();
    while let Err(failure) = agent.ask(call("true", SIZE)).await {
        assert_eq!(failure.kind(), FailureKind::Exhausted, "{}", failure.message);
        assert!(begin.elapsed() < crate::support::DEADLINE, "never given back");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_size_that_is_none_is_refused_here_too() {
    let agent = Agent::new().await;
    let process = start(&agent, "sleep 1000").await;

    for (rows, columns) in [(0, 80), (24, 0), (10_001, 80), (24, 10_001), (65_536 + 24, 80)] {
        let size = TerminalSize { rows, columns };
        let failure = agent.ask(call("true", size)).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Invalid, "{}", failure.message);
        let resize = Call::Resize(Resize { process, size: Some(size) });
        assert_eq!(agent.ask(resize).await.unwrap_err().kind(), FailureKind::Invalid);
    }
    let resize = Call::Resize(Resize { process, size: None });
    assert_eq!(agent.ask(resize).await.unwrap_err().kind(), FailureKind::Invalid);
}
