//! Links that break, fill up, or end with their sandbox.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
};

use atoll_agent_protocol::message::{Ended, request::Call};
use atoll_engine::{
    Command, ErrorKind, Event, Events, Files as _, LimitHit, Offsets, Outcome, ProcessId, Reason,
    Sandbox, Stream,
};
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::stage::{Script, all, exited, honest, honest_but, output, say, start};

fn written(offset: u64, data: &'static [u8]) -> Event {
    Event::Output { stream: Stream::Stdout, offset, data: Bytes::from_static(data) }
}

async fn next(events: &mut Events) -> Event {
    events.next().await.expect("another event").expect("no error")
}

fn end(events: &[atoll_engine::Result<Event>]) -> &Outcome {
    match events.last() {
        Some(Ok(Event::Ended(outcome))) => outcome,
        other => panic!("{other:?} is no end"),
    }
}

#[tokio::test(start_paused = true)]
async fn output_goes_on_over_another_link_where_it_stopped() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::Attach(attach) if attach.stdout == 0 => Break(Box::pin(async move {
            say(&stream, output(1, 0, b"hel")).await;
            std::future::pending::<()>().await;
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    let mut events = sandbox.attach(process, Offsets::default()).await.unwrap();
    assert_eq!(next(&mut events).await, written(0, b"hel"));

    place.cut();

    assert_eq!(next(&mut events).await, written(3, b"lo"));
    script.end(exited(7));
    let rest = all(events).await;
    assert_eq!((rest.len(), end(&rest).exit_code), (1, Some(7)));
    assert_eq!(place.destroyed(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_end_is_seen_although_the_link_broke_before() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;

    place.cut();
    script.end(exited(3));

    let events = all(sandbox.attach(process, Offsets::default()).await.unwrap()).await;
    assert_eq!(end(&events).exit_code, Some(3));
    let processes = sandbox.processes().await.unwrap();
    assert_eq!(processes[0].outcome.as_ref(), Some(end(&events)));
}

#[tokio::test(start_paused = true)]
async fn calls_after_a_break_find_another_link() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    let sandbox = place.connect_to().await.unwrap();
    sandbox.make_directory("a").await.unwrap();

    for _ in 0..3 {
        place.cut();
        // The break may be noticed only by the first call.
        let _ = sandbox.make_directory("b").await;
        sandbox.make_directory("c").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn with_the_sandbox_everything_is_lost() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    let events = sandbox.attach(process, Offsets::default()).await.unwrap();

    // As it is when a sandbox is killed from outside: the link first, then the news.
    place.cut();
    place.gone.cancel();

    let events = all(events).await;
    assert_eq!(end(&events).reason, Reason::Lost);
    assert!(!end(&events).sandbox_survived);
    sandbox.ended().await;
    let lost = [
        sandbox.start(Command::new(["true"])).await.err(),
        sandbox.attach(process, Offsets::default()).await.err(),
        sandbox.write_stdin(process, Bytes::from_static(b"x")).await.err(),
        sandbox.close_stdin(process).await.err(),
        sandbox.signal(process, 15).await.err(),
        sandbox.kill(process).await.err(),
        sandbox.processes().await.err(),
        sandbox.usage().await.err(),
        sandbox.stat("a").await.err(),
        sandbox.read("a").await.err(),
        sandbox.list("a").await.err(),
    ];
    for (index, error) in lost.into_iter().enumerate() {
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Lost), "call {index}");
    }
    sandbox.destroy().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn destroying_ends_what_runs_as_lost() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    let events = sandbox.attach(process, Offsets::default()).await.unwrap();

    sandbox.destroy().await.unwrap();

    assert_eq!(end(&all(events).await).reason, Reason::Lost);
}

#[tokio::test(start_paused = true)]
async fn readers_that_do_not_read_hold_up_no_call() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    let mut stalled = Vec::new();
    for _ in 0..256 {
        let mut events = sandbox.attach(process, Offsets::default()).await.unwrap();
        assert_eq!(next(&mut events).await, written(0, b"hello"));
        stalled.push(events);
    }

    let mut one_too_many = sandbox.attach(process, Offsets::default()).await.unwrap();
    let error = one_too_many.next().await.unwrap().unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
    sandbox.signal(process, 15).await.unwrap();
    sandbox.kill(process).await.unwrap();
    for events in stalled {
        assert_eq!(end(&all(events).await).reason, Reason::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn another_host_judges_as_the_first_would_have() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    place.counters.lock().unwrap().oom_kills = Some(5);
    let first = place.connect_to().await.unwrap();
    start(&first).await;
    drop(first);
    place.counters.lock().unwrap().oom_kills = Some(6);

    let second = place.connect_to().await.unwrap();
    script.end(Ended { signal: Some(9), duration_us: 1, ..Ended::default() });

    let events = all(second.attach(ProcessId(1), Offsets::default()).await.unwrap()).await;
    assert_eq!(end(&events).reason, Reason::Oom);
    assert_eq!(end(&events).limits_hit, [LimitHit::Memory]);
}

#[tokio::test(start_paused = true)]
async fn every_reader_hears_the_same_end() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    let early = sandbox.attach(process, Offsets::default()).await.unwrap();
    script.end(exited(0));
    let early = all(early).await;

    // What happens later is not this process's doing.
    place.counters.lock().unwrap().oom_kills = Some(9);

    let late = all(sandbox.attach(process, Offsets::default()).await.unwrap()).await;
    assert_eq!(end(&late), end(&early));
    assert_eq!(end(&late).limits_hit, []);
}
