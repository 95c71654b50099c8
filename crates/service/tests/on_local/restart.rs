//! What a service finds when it opens: sessions to adopt, remains to remove.

use std::time::{Duration, Instant};

use atoll_engine::{Engine as _, Network, Spec};
use atoll_service::{Event, Offsets, Reconciled};
use atoll_store::{Execution, ExecutionState, SessionRecord};
use atoll_types::{
    execution::{ExecutionResult, Reason},
    process::StartProcess,
    session::{End, State},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;

use crate::world::{PATIENCE, World, open, settings, shell, trusted};

/// Says `before`, waits for a file `go`, and says `after`.
const GATED: &str = "echo before; touch begun; until [ -e go ]; do sleep 0.02; done; echo after";

async fn open_gate(world: &World, id: &atoll_types::id::SessionId) {
    let nothing = stream::once(async { Ok(Bytes::new()) }).boxed();
    world.service().write_file(id, "go", nothing).await.unwrap();
}

async fn recorded(world: &World, id: &str) -> ExecutionResult {
    let began = Instant::now();
    loop {
        let record = world.store.execution(id).await.unwrap().unwrap();
        if let Some(result) = record.result {
            assert_eq!(record.state, ExecutionState::Ended);
            return serde_json::from_value(result).unwrap();
        }
        assert!(began.elapsed() < PATIENCE, "no result");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_session_is_adopted_and_its_process_goes_on_unharmed() {
    let mut world = World::new().await;
    let session = world.session().await;
    let id = session.session_id.clone();
    let start = StartProcess { command: shell(GATED).command, ..StartProcess::default() };
    let process = world.service().start_process(&id, start).await.unwrap().id;
    world.until_file(&id, "begun").await;

    world.crash().await;

    let adopted = Reconciled { adopted: vec![id.clone()], ..Reconciled::default() };
    assert_eq!(world.service().reconciled(), adopted);
    assert_eq!(world.service().session(&id).await.unwrap(), session);
    open_gate(&world, &id).await;
    let mut events =
        world.service().attach_process(&id, process, Offsets::default()).await.unwrap();
    let mut output = Vec::new();
    while let Some(Event::Output { data, .. }) = events.next().await.transpose().unwrap() {
        output.extend_from_slice(&data);
    }
    assert_eq!(output, b"before\nafter\n");
}

#[tokio::test]
async fn an_execution_is_followed_to_its_result_by_the_next_server() {
    let mut world = World::new().await;
    let id = world.session().await.session_id;
    let service = world.service().clone();
    let session = id.clone();
    let caller = tokio::spawn(async move { service.execute(&session, shell(GATED)).await });
    world.until_file(&id, "begun").await;
    let began = Instant::now();
    let execution = loop {
        let running = world.store.running_executions().await.unwrap();
        if let Some(execution) = running.into_iter().find(|one| one.process.is_some()) {
            break execution.id;
        }
        assert!(began.elapsed() < PATIENCE, "no process written down");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };

    world.restart().await;

    assert!(caller.await.unwrap().is_err(), "the first server stopped");
    assert_eq!(world.service().reconciled().followed, [execution.clone()]);
    assert_eq!(world.service().session(&id).await.unwrap().state, State::Busy);
    open_gate(&world, &id).await;
    let result = recorded(&world, &execution).await;
    assert_eq!((result.reason, result.exit_code), (Reason::Exited, Some(0)));
    assert_eq!(result.stdout, "before\nafter\n");
    world.until(&id, State::Ready).await;
}

#[tokio::test]
async fn what_is_gone_is_lost_and_so_is_what_ran_in_it() {
    let mut world = World::new().await;
    let session = world.session().await;
    let running = Execution {
        id: "x".to_owned(),
        session: session.session_id.clone(),
        sandbox: session.sandbox_id.clone(),
        summary: String::new(),
        state: ExecutionState::Running,
        process: Some(atoll_types::id::ProcessId(1)),
        created: Timestamp::now(),
        result: None,
    };
    world.service().shutdown().await;
    world.engine().destroy(&session.sandbox_id).await.unwrap();
    let store = atoll_store::Store::open(&world.path().join("atoll.db")).await.unwrap();
    store.begin_execution(&running).await.unwrap();

    world.crash().await;

    let report = world.service().reconciled();
    assert_eq!(report.lost, [session.session_id.clone()]);
    assert_eq!(report.lost_executions, ["x"]);
    let lost = world.service().session(&session.session_id).await.unwrap();
    assert_eq!((lost.state, lost.end), (State::Lost, Some(End::SandboxLost)));
    let result = recorded(&world, "x").await;
    assert_eq!((result.reason, result.state_survived), (Reason::Lost, false));
}

#[tokio::test]
async fn a_sandbox_that_nobody_knows_is_removed() {
    let mut world = World::new().await;
    let known = world.session().await;
    let spec = Spec { trusted: true, network: Network::Host, ..Spec::default() };
    let orphan = "orphan".parse().unwrap();
    world.engine().create(&orphan, &spec).await.unwrap();

    world.crash().await;

    let report = world.service().reconciled();
    assert_eq!(report.orphans, [orphan]);
    assert_eq!(report.adopted, [known.session_id]);
    assert_eq!(world.sandboxes().await, [known.sandbox_id]);
}

#[tokio::test]
async fn what_was_half_done_is_finished_or_undone() {
    let mut world = World::new().await;
    let ended = world.session().await;
    world.service().shutdown().await;
    let store = atoll_store::Store::open(&world.path().join("atoll.db")).await.unwrap();
    let destroying = |_| Ok::<_, ()>(State::Destroying);
    store.advance(&ended.session_id, Some(End::Idle), destroying).await.unwrap();
    let creating = SessionRecord {
        id: "half".parse().unwrap(),
        sandbox: "half-box".parse().unwrap(),
        state: State::Creating,
        ..store.session(&ended.session_id).await.unwrap().unwrap()
    };
    let creating = SessionRecord { end: None, ..creating };
    store.insert_session(&creating).await.unwrap();

    world.crash().await;

    let report = world.service().reconciled();
    assert_eq!(report.ended, [ended.session_id.clone()]);
    assert_eq!(report.failed, [creating.id.clone()]);
    let gone = world.service().session(&ended.session_id).await.unwrap();
    assert_eq!((gone.state, gone.end), (State::Gone, Some(End::Idle)));
    let failed = world.service().session(&creating.id).await.unwrap();
    assert_eq!((failed.state, failed.end), (State::Failed, Some(End::ServerStopped)));
    assert_eq!(world.sandboxes().await, []);
}

#[tokio::test]
async fn a_deadline_that_came_meanwhile_counts() {
    let mut world = World::new().await;
    let session = world.session().await;
    world.service().shutdown().await;
    let store = atoll_store::Store::open(&world.path().join("atoll.db")).await.unwrap();
    store.set_deadline(&session.session_id, Timestamp::UNIX_EPOCH).await.unwrap();

    world.crash().await;

    assert_eq!(world.service().reconciled().ended, [session.session_id.clone()]);
    assert_eq!(world.until_ended(&session.session_id).await, Some(End::Expired));
    assert_eq!(world.sandboxes().await, []);
}

const CHILD: &str = "ATOLL_SERVICE_TEST_PLACE";

#[tokio::test]
async fn a_killed_server_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut server = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "restart::a_server_to_be_killed", "--ignored"])
        .env(CHILD, place.path())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !place.path().join("running").exists() {
        assert!(began.elapsed() < PATIENCE, "the server did not start");
        assert!(server.try_wait().unwrap().is_none(), "the server ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    server.kill().await.unwrap();
    let world = World::at(place, settings()).await;

    let report = world.service().reconciled();
    let ([id], [execution]) = (&report.adopted[..], &report.followed[..]) else {
        panic!("{report:?}");
    };
    open_gate(&world, id).await;
    let result = recorded(&world, execution).await;
    assert_eq!((result.reason, result.exit_code), (Reason::Exited, Some(0)));
    assert_eq!(result.stdout, "before\nafter\n");
}

#[tokio::test]
#[ignore = "part of a_killed_server_loses_nothing"]
#[expect(clippy::disallowed_methods, reason = "how the server is told its place")]
async fn a_server_to_be_killed() {
    let Some(place) = std::env::var_os(CHILD) else { return };
    let place = std::path::PathBuf::from(place);
    let (service, store) = open(&place, settings()).await;
    let id = service.create_session(trusted()).await.unwrap().session_id;
    let execute = service.execute(&id, shell(GATED));
    let tell = async {
        loop {
            let running = store.running_executions().await.unwrap();
            let begun = service.stat_file(&id, "begun").await.is_ok();
            if begun && running.iter().any(|one| one.process.is_some()) {
                std::fs::write(place.join("running"), "").unwrap();
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        result = execute => panic!("it ended: {result:?}"),
        () = tell => {}
    }
}
