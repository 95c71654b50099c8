//! Agents that lie, flood, stammer or say nothing.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
    time::Duration,
};

use atoll_agent_protocol::{
    message::{
        Ended, Failure, FailureKind, Hello, OfProcess, Process, VERSION, request::Call,
        response::Answer,
    },
    mux::{Mux, Stream},
};
use atoll_engine::{
    Command, ErrorKind, Event, LimitHit, MAX_OUTPUT, Offsets, ProcessId, Reason, Sandbox,
};
use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt as _;

use crate::stage::{Place, Script, all, exited, honest, honest_but, output, say, start};

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_nothing_is_not_waited_for() {
    let place = Place::new(|_, io| {
        tokio::spawn(async move {
            let _mux = Mux::server(io);
            std::future::pending::<()>().await;
        });
    });

    let error = place.connect_to().await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_up_is_an_error() {
    let error = Place::new(|_, io| drop(io)).connect_to().await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
}

#[tokio::test(start_paused = true)]
async fn garbage_is_an_error() {
    for byte in [0, 1, 0x7f, 0xff] {
        let place = Place::new(move |_, mut io| {
            tokio::spawn(async move { while io.write_all(&[byte; 999]).await.is_ok() {} });
        });

        let error = place.connect_to().await.unwrap_err();

        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    }
}

#[tokio::test]
async fn an_agent_of_another_version_is_refused() {
    let place = Place::answering(|_, stream| {
        Box::pin(async move {
            say(&stream, Answer::Hello(Hello { version: VERSION + 1 })).await;
            stream.finish();
        })
    });

    let error = place.connect_to().await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_huge_answer_is_cut_off() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::Signal(_) => Break(Box::pin(async move {
            let message = "x".repeat(3 << 20);
            say(&stream, Answer::Error(Failure { kind: 0, message })).await;
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();

    let error = sandbox.signal(ProcessId(1), 1).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    assert!(error.message().len() < 200);
}

#[tokio::test]
async fn a_failure_is_told_in_clean_words() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::Signal(_) => Break(Box::pin(async move {
            let message = "no\x1b]0;title\x07\nlevel=error forged".repeat(1000);
            let kind = FailureKind::Denied.into();
            say(&stream, Answer::Error(Failure { kind, message })).await;
            stream.finish();
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();

    let error = sandbox.signal(ProcessId(1), 1).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(!error.message().contains(char::is_control), "{error}");
    assert!(error.message().chars().count() < 400);
}

#[tokio::test]
async fn one_number_for_two_processes_is_an_error() {
    let script = Arc::<Script>::default();
    let sandbox = honest(&script).connect_to().await.unwrap();
    start(&sandbox).await;

    let error = sandbox.start(Command::new(["true"])).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
}

#[tokio::test]
async fn an_answer_to_another_question_is_an_error() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::Start(_) | Call::Disk(_) | Call::CloseStdin(_) => Break(Box::pin(async move {
            say(&stream, Answer::Ended(exited(0))).await;
            stream.finish();
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();

    let started = sandbox.start(Command::new(["true"])).await.unwrap_err();
    let closed = sandbox.close_stdin(ProcessId(1)).await.unwrap_err();

    assert_eq!(started.kind(), ErrorKind::Internal, "{started}");
    assert_eq!(closed.kind(), ErrorKind::Internal, "{closed}");
    assert_eq!(sandbox.usage().await.unwrap().disk_used, None);
}

/// An honest agent but for what it answers to a reader of output.
fn writing(answers: Vec<Answer>) -> Arc<Place> {
    let script = Arc::<Script>::default();
    honest_but(&script, move |call, stream| match call {
        Call::Attach(attach) if attach.stdout != u64::MAX => {
            let answers = answers.clone();
            Break(Box::pin(async move {
                for answer in answers {
                    say(&stream, answer).await;
                }
                std::future::pending::<()>().await;
            }))
        }
        call => Continue((call, stream)),
    })
}

#[tokio::test]
async fn output_that_is_not_the_next_is_an_error() {
    let cases = [
        vec![output(1, 1, b"x")],
        vec![output(1, 0, b"abc"), output(1, 2, b"x")],
        vec![output(1, 0, b"abc"), output(1, 4, b"x")],
        vec![output(1, 0, b"abc"), output(2, 3, b"x")],
        vec![output(1, 0, b"")],
        vec![output(0, 0, b"x")],
        vec![output(3, 0, b"x")],
        vec![output(1, u64::MAX, b"x")],
        vec![Answer::Started(OfProcess { process: 1 })],
    ];
    for answers in cases {
        let sandbox = writing(answers.clone()).connect_to().await.unwrap();
        let process = start(&sandbox).await;

        let events = all(sandbox.attach(process, Offsets::default()).await.unwrap()).await;

        let (last, before) = events.split_last().unwrap();
        assert_eq!(before.len(), answers.len() - 1);
        assert_eq!(last.as_ref().unwrap_err().kind(), ErrorKind::Internal, "{answers:?}");
    }
}

#[tokio::test]
async fn output_beyond_all_limits_is_an_error() {
    let sandbox = writing(vec![output(1, MAX_OUTPUT, b"x")]).connect_to().await.unwrap();
    let process = start(&sandbox).await;

    let from = Offsets { stdout: MAX_OUTPUT, stderr: 0 };
    let events = all(sandbox.attach(process, from).await.unwrap()).await;

    assert_eq!(events.len(), 1);
    assert!(events[0].is_err());
}

#[tokio::test(start_paused = true)]
async fn output_that_stops_short_of_the_end_is_an_error() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::Attach(attach) if attach.stdout != u64::MAX => Break(Box::pin(async move {
            say(&stream, output(1, 0, b"half")).await;
            std::future::pending::<()>().await;
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    script.end(exited(0));

    let events = all(sandbox.attach(process, Offsets::default()).await.unwrap()).await;

    // Each attempt begins where the last one stopped, and this agent does not.
    assert!(events.last().unwrap().is_err(), "{events:?}");
}

#[tokio::test]
async fn a_lie_about_memory_or_time_is_not_believed() {
    for (cause, oom_kills, reason) in [
        (1, 0, Reason::Signaled),
        (0, 0, Reason::Signaled),
        (0, 1, Reason::Oom),
        (77, 0, Reason::Signaled),
    ] {
        let script = Arc::<Script>::default();
        let place = honest(&script);
        let sandbox = place.connect_to().await.unwrap();
        let process = start(&sandbox).await;
        place.counters.lock().unwrap().oom_kills = Some(oom_kills);

        script.end(Ended { signal: Some(9), cause, duration_us: u64::MAX, ..Ended::default() });
        let events = all(sandbox.attach(process, Offsets::default()).await.unwrap()).await;

        let Some(Ok(Event::Ended(outcome))) = events.last() else { panic!("{events:?}") };
        assert_eq!(outcome.reason, reason, "{cause} {oom_kills}");
        assert!(outcome.duration < Duration::from_hours(1));
    }
}

#[tokio::test]
async fn an_exit_code_does_not_hide_that_memory_ran_out() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    place.counters.lock().unwrap().oom_kills = Some(3);

    script.end(exited(0));
    let events = all(sandbox.attach(process, Offsets::default()).await.unwrap()).await;

    let Some(Ok(Event::Ended(outcome))) = events.last() else { panic!("{events:?}") };
    assert_eq!(outcome.limits_hit, [LimitHit::Memory]);
}

fn endless(stream: Stream, answer: Answer) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let response = atoll_agent_protocol::message::Response { answer: Some(answer) };
        while stream.send(&response).await.is_ok() {}
    })
}

#[tokio::test]
async fn an_endless_list_of_processes_is_cut_off() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::Processes(_) => {
            let argv = vec!["x".repeat(500_000)];
            Break(endless(
                stream,
                Answer::Process(Process { process: 1, argv, ..Process::default() }),
            ))
        }
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();

    let error = sandbox.processes().await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
}

#[tokio::test]
async fn what_makes_no_sense_is_never_sent() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    let sandbox = place.connect_to().await.unwrap();

    for signal in [i32::MIN, -1, 0, 65, i32::MAX] {
        let error = sandbox.signal(ProcessId(1), signal).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{signal}");
    }
    let error = sandbox.start(Command::new(["a\0b"])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(sandbox.processes().await.unwrap(), []);
    let error = sandbox.attach(ProcessId(9), Offsets::default()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
