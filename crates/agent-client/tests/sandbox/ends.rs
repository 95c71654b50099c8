//! Limits that the host keeps itself, whatever the agent does.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
    time::Duration,
};

use atoll_agent_protocol::{
    message::{Disk, Done, request::Call, response::Answer},
    mux::Stream,
};
use atoll_engine::{
    Command, ErrorKind, Event, LimitHit, Limits, Offsets, Outcome, ProcessId, Reason, Sandbox,
};
use atoll_types::quantity::Size;
use futures_util::future::BoxFuture;

use crate::stage::{Place, Script, all, exited, honest, honest_but, say, start};

/// An agent that answers neither a kill nor anyone who asks for an end.
fn deaf() -> Arc<Place> {
    let script = Arc::<Script>::default();
    honest_but(&script, |call, stream| match call {
        Call::Kill(_) | Call::Attach(_) => Break(forever(stream)),
        call => Continue((call, stream)),
    })
}

fn forever(stream: Stream) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let _stream = stream;
        std::future::pending::<()>().await;
    })
}

async fn end_of(sandbox: &dyn Sandbox, process: ProcessId) -> Outcome {
    let events = all(sandbox.attach(process, Offsets::default()).await.unwrap()).await;
    match events.into_iter().last() {
        Some(Ok(Event::Ended(outcome))) => outcome,
        other => panic!("{other:?} is no end"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_does_not_end_in_time_ends_with_its_sandbox() {
    let place = deaf();
    let sandbox = place.connect_to().await.unwrap();
    let command = Command::new(["sleep"]).timeout(Duration::from_secs(30));
    let process = sandbox.start(command).await.unwrap();

    let outcome = end_of(sandbox.as_ref(), process).await;

    assert_eq!(outcome.reason, Reason::Timeout);
    assert!(!outcome.sandbox_survived);
    assert_eq!(place.destroyed(), 1);
}

#[tokio::test(start_paused = true)]
async fn time_is_kept_also_when_nobody_looks() {
    let place = deaf();
    let sandbox = place.connect_to().await.unwrap();
    let command = Command::new(["sleep"]).timeout(Duration::from_secs(30));
    sandbox.start(command).await.unwrap();
    drop(sandbox);

    tokio::time::timeout(Duration::from_mins(1), place.gone.cancelled()).await.unwrap();

    assert_eq!(place.destroyed(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_host_keeps_the_time_it_did_not_set() {
    let script = Arc::<Script>::default();
    let before = honest(&script).connect_to().await.unwrap();
    let command = Command::new(["sleep"]).timeout(Duration::from_secs(30));
    before.start(command).await.unwrap();

    let after = honest(&script);
    let _sandbox = after.connect_to().await.unwrap();

    tokio::time::timeout(Duration::from_mins(1), after.gone.cancelled()).await.unwrap();
    assert_eq!(after.destroyed(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ended_in_time_is_left_alone() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    let sandbox = place.connect_to().await.unwrap();
    let command = Command::new(["true"]).timeout(Duration::from_secs(1));
    let process = sandbox.start(command).await.unwrap();
    script.end(exited(0));
    assert_eq!(end_of(sandbox.as_ref(), process).await.reason, Reason::Exited);

    let later = tokio::time::timeout(Duration::from_mins(10), sandbox.ended()).await;

    assert!(later.is_err(), "the sandbox ended");
    assert_eq!(place.destroyed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_kill_that_is_not_answered_ends_the_sandbox() {
    let place = deaf();
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;

    sandbox.kill(process).await.unwrap();

    assert_eq!(place.destroyed(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_killed_process_was_cancelled_even_if_its_sandbox_had_to_go() {
    let place = deaf();
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    let events = sandbox.attach(process, Offsets::default()).await.unwrap();

    sandbox.kill(process).await.unwrap();

    let events = all(events).await;
    let Some(Ok(Event::Ended(outcome))) = events.last() else { panic!("{events:?}") };
    assert_eq!(outcome.reason, Reason::Cancelled);
    assert!(!outcome.sandbox_survived);
}

#[tokio::test(start_paused = true)]
async fn a_kill_goes_on_although_nobody_waits_for_it() {
    let place = deaf();
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;

    let given_up = tokio::time::timeout(Duration::from_secs(1), sandbox.kill(process)).await;

    assert!(given_up.is_err());
    tokio::time::timeout(Duration::from_mins(1), sandbox.ended()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn processor_time_is_limited_by_what_the_host_counts() {
    let script = Arc::<Script>::default();
    let place = honest(&script);
    place.counters.lock().unwrap().cpu_time = Some(Duration::from_secs(100));
    let sandbox = place.connect_to().await.unwrap();
    let mut command = Command::new(["spin"]);
    command.cpu_time = Some(Duration::from_secs(2));
    let process = sandbox.start(command).await.unwrap();
    assert_eq!(sandbox.processes().await.unwrap()[0].outcome, None);

    place.counters.lock().unwrap().cpu_time = Some(Duration::from_millis(102_500));

    let outcome = end_of(sandbox.as_ref(), process).await;
    assert_eq!(outcome.reason, Reason::Timeout);
    assert_eq!(outcome.limits_hit, [LimitHit::Cpu]);
    assert_eq!(outcome.cpu_time, Duration::from_millis(2500));
    assert!(outcome.sandbox_survived);
    assert_eq!(place.destroyed(), 0);
}

#[tokio::test(start_paused = true)]
async fn processor_time_ends_even_a_sandbox_whose_agent_is_deaf() {
    let place = deaf();
    let sandbox = place.connect_to().await.unwrap();
    let mut command = Command::new(["spin"]);
    command.cpu_time = Some(Duration::from_secs(2));
    let process = sandbox.start(command).await.unwrap();

    place.counters.lock().unwrap().cpu_time = Some(Duration::from_secs(3));

    let outcome = end_of(sandbox.as_ref(), process).await;
    assert_eq!((outcome.reason, outcome.sandbox_survived), (Reason::Timeout, false));
    assert_eq!(outcome.limits_hit, [LimitHit::Cpu]);
}

#[tokio::test(start_paused = true)]
async fn input_that_is_never_taken_is_given_up_with_its_process() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::WriteStdin(_) => Break(forever(stream)),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    script.end(exited(0));

    let error = sandbox.write_stdin(process, "data".into()).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
}

#[tokio::test(start_paused = true)]
async fn long_input_is_sent_in_parts() {
    let script = Arc::<Script>::default();
    let taken = Arc::<std::sync::Mutex<Vec<u8>>>::default();
    let place = {
        let taken = Arc::clone(&taken);
        honest_but(&script, move |call, stream| match call {
            Call::WriteStdin(write) => {
                taken.lock().unwrap().extend_from_slice(&write.data);
                Break(Box::pin(async move {
                    say(&stream, Answer::Done(Done::default())).await;
                    stream.finish();
                }))
            }
            call => Continue((call, stream)),
        })
    };
    let sandbox = place.connect_to().await.unwrap();
    let process = start(&sandbox).await;
    let data: Vec<u8> = (0..6_000_000u32).map(|n| n.to_le_bytes()[1]).collect();

    sandbox.write_stdin(process, data.clone().into()).await.unwrap();

    assert!(*taken.lock().unwrap() == data);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_told_where_it_is_limited() {
    for (limit, used, hits) in [
        (Some(Size(1000)), 995, vec![LimitHit::Disk]),
        (Some(Size(1000)), 900, vec![]),
        (None, 1000, vec![]),
    ] {
        let script = Arc::<Script>::default();
        let place = honest_but(&script, move |call, stream| match call {
            Call::Disk(_) => Break(Box::pin(async move {
                say(&stream, Answer::Disk(Disk { used, total: 1000 })).await;
                stream.finish();
            })),
            call => Continue((call, stream)),
        });
        let limits = Limits { disk: limit, ..Limits::default() };
        let sandbox = place.connect_with(limits).await.unwrap();
        let process = start(&sandbox).await;

        script.end(exited(1));

        assert_eq!(end_of(sandbox.as_ref(), process).await.limits_hit, hits, "{limit:?} {used}");
    }
}
