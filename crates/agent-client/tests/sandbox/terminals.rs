//! What an agent may say of a terminal, and what it may not.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
};

use atoll_agent_protocol::message::{
    Failure, FailureKind, OfProcess, Process, TerminalSize, request::Call, response::Answer,
};
use atoll_engine::{Command, ErrorKind, Event, Offsets, ProcessId, Sandbox};

use crate::stage::{Place, Script, all, exited, honest_but, output, say};

/// An agent with one terminal, which has written this.
fn writing(answers: Vec<Answer>) -> Arc<Place> {
    let script = Arc::<Script>::default();
    honest_but(&script, move |call, stream| match call {
        Call::StartTerminal(_) => Break(Box::pin(async move {
            say(&stream, Answer::Started(OfProcess { process: 1 })).await;
            stream.finish();
        })),
        Call::Attach(attach) if attach.stdout == 0 => {
            let answers = answers.clone();
            Break(Box::pin(async move {
                for answer in answers {
                    say(&stream, answer).await;
                }
                stream.finish();
            }))
        }
        call => Continue((call, stream)),
    })
}

async fn told(answers: Vec<Answer>) -> Vec<Result<Event, ErrorKind>> {
    let sandbox = writing(answers).connect_to().await.unwrap();
    let command = Command::new(["sh"]).with_terminal(24, 80);
    let process = sandbox.start(command).await.unwrap();
    let events = sandbox.attach(process, Offsets::default()).await.unwrap();
    all(events).await.into_iter().map(|event| event.map_err(|error| error.kind())).collect()
}

#[tokio::test]
async fn of_a_terminal_something_may_be_missing() {
    let far = u64::MAX - 100;
    let answers = vec![output(1, 7, b"seven"), output(1, far, b"far"), Answer::Ended(exited(0))];

    let events = told(answers).await;

    let offsets: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Ok(Event::Output { offset, .. }) => Some(*offset),
            _ => None,
        })
        .collect();
    assert_eq!(offsets, [7, far]);
    assert!(matches!(events.last(), Some(Ok(Event::Ended(_)))), "{events:?}");
}

#[tokio::test]
async fn nothing_of_a_terminal_comes_twice() {
    for second in [output(1, 11, b"x"), output(1, u64::MAX, b"x"), output(3, 12, b"x")] {
        let events = told(vec![output(1, 7, b"seven"), second]).await;

        assert_eq!(events.len(), 2);
        assert_eq!(events[1], Err(ErrorKind::Internal));
    }
}

#[tokio::test]
async fn a_size_nobody_asked_for_is_nonsense() {
    for (rows, columns) in [(0, 80), (24, 100_000)] {
        let script = Arc::<Script>::default();
        let place = honest_but(&script, move |call, stream| match call {
            Call::Processes(_) => Break(Box::pin(async move {
                let terminal = Some(TerminalSize { rows, columns });
                let process = Process { process: 1, terminal, ..Process::default() };
                say(&stream, Answer::Process(process)).await;
                stream.finish();
            })),
            call => Continue((call, stream)),
        });
        let sandbox = place.connect_to().await.unwrap();

        assert_eq!(sandbox.processes().await.unwrap_err().kind(), ErrorKind::Internal);
    }
}

#[tokio::test]
async fn an_agent_that_knows_no_terminals_starts_none() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::StartTerminal(_) | Call::Resize(_) => Break(Box::pin(async move {
            let kind = FailureKind::Unsupported.into();
            say(&stream, Answer::Error(Failure { kind, message: "what?".into() })).await;
            stream.finish();
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();

    let started = sandbox.start(Command::new(["sh"]).with_terminal(24, 80)).await;
    let size = atoll_engine::TerminalSize { rows: 1, columns: 1 };
    let resized = sandbox.resize(ProcessId(1), size).await;

    assert_eq!(started.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(resized.unwrap_err().kind(), ErrorKind::Unsupported);
}
