//! Each method of the store, on a store of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use atoll_store::{
    ErrorKind, Execution, ExecutionState, KeyRecord, SessionRecord, SessionsQuery, Store,
    Transition,
};
use atoll_types::{
    id::ProcessId,
    key::Scope,
    session::{End, State},
};
use jiff::Timestamp;
use serde_json::json;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn session(name: &str, state: State, second: i64) -> SessionRecord {
    SessionRecord {
        id: name.parse().unwrap(),
        sandbox: format!("box-{name}").parse().unwrap(),
        engine: "local".to_owned(),
        environment: "base".to_owned(),
        state,
        end: None,
        created: at(second),
        expires: at(second + 60),
        last_activity: at(second),
        spec: json!({ "trusted": true }),
        metadata: BTreeMap::from([("who".to_owned(), name.to_owned())]),
    }
}

fn execution(name: &str, session: &str) -> Execution {
    Execution {
        id: name.to_owned(),
        session: session.parse().unwrap(),
        sandbox: format!("box-{session}").parse().unwrap(),
        summary: "true".to_owned(),
        state: ExecutionState::Running,
        process: None,
        created: at(1),
        result: None,
    }
}

fn key(name: &str, second: i64) -> KeyRecord {
    KeyRecord {
        id: format!("id-{name}"),
        name: name.to_owned(),
        hash: vec![0, 255, 7],
        scopes: vec![Scope::Read, Scope::Admin],
        created: at(second),
    }
}

async fn store_with(sessions: &[SessionRecord]) -> Store {
    let store = Store::in_memory().await.unwrap();
    for session in sessions {
        store.insert_session(session).await.unwrap();
    }
    store
}

fn names(sessions: &[SessionRecord]) -> Vec<&str> {
    sessions.iter().map(|session| session.id.as_str()).collect()
}

fn become_state(state: State) -> impl FnOnce(State) -> Result<State, &'static str> + Send {
    move |_| Ok(state)
}

#[tokio::test]
async fn a_session_is_read_as_it_was_written() {
    let written = SessionRecord { end: Some(End::Idle), ..session("a", State::Gone, 0) };
    let store = store_with(std::slice::from_ref(&written)).await;

    let read = store.session(&written.id).await.unwrap();

    assert_eq!(read, Some(written));
    assert_eq!(store.session(&"b".parse().unwrap()).await.unwrap(), None);
}

#[tokio::test]
async fn a_session_or_sandbox_id_is_used_once() {
    let first = session("a", State::Ready, 0);
    let store = store_with(std::slice::from_ref(&first)).await;
    let same_sandbox =
        SessionRecord { sandbox: first.sandbox.clone(), ..session("b", State::Ready, 0) };

    for again in [first, same_sandbox] {
        let error = store.insert_session(&again).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }
}

#[tokio::test]
async fn pages_are_newest_first_and_miss_nothing_between_them() {
    // Two of the same moment: the id decides.
    let all: Vec<_> = [("a", 1), ("b", 2), ("c", 2), ("d", 3), ("e", 4)]
        .map(|(name, second)| session(name, State::Ready, second))
        .to_vec();
    let store = store_with(&all).await;
    let mut query = SessionsQuery { limit: 2, ..SessionsQuery::default() };
    let mut seen = Vec::new();

    loop {
        let page = store.sessions(&query).await.unwrap();
        let Some(last) = page.last() else { break };
        query.after = Some((last.created, last.id.clone()));
        seen.extend(names(&page).into_iter().map(str::to_owned));
        // A newcomer does not shift what follows.
        let newcomer = format!("new-{}", seen.len());
        store.insert_session(&session(&newcomer, State::Ready, 100)).await.unwrap();
    }

    assert_eq!(seen, ["e", "d", "c", "b", "a"]);
}

#[tokio::test]
async fn a_page_goes_on_after_a_session_that_was_forgotten() {
    let store = store_with(&[session("a", State::Ready, 1)]).await;
    let after = Some((at(2), "gone".parse().unwrap()));

    let page = store.sessions(&SessionsQuery { after, limit: 9, ..SessionsQuery::default() }).await;

    assert_eq!(names(&page.unwrap()), ["a"]);
}

#[tokio::test]
async fn sessions_are_filtered_by_all_that_is_said() {
    let mut other = session("b", State::Gone, 2);
    other.engine = "namespace".to_owned();
    other.environment = "python".to_owned();
    let store = store_with(&[session("a", State::Ready, 1), other]).await;
    let any = SessionsQuery { limit: 9, ..SessionsQuery::default() };
    let metadata = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);

    for (query, found) in [
        (any.clone(), vec!["b", "a"]),
        (SessionsQuery { state: Some(State::Gone), ..any.clone() }, vec!["b"]),
        (SessionsQuery { engine: Some("local".into()), ..any.clone() }, vec!["a"]),
        (SessionsQuery { environment: Some("python".into()), ..any.clone() }, vec!["b"]),
        (SessionsQuery { metadata: metadata("who", "a"), ..any.clone() }, vec!["a"]),
        (SessionsQuery { metadata: metadata("who", "x' or '1"), ..any.clone() }, vec![]),
        (SessionsQuery { metadata: metadata("what", "a"), ..any.clone() }, vec![]),
    ] {
        assert_eq!(names(&store.sessions(&query).await.unwrap()), found, "{query:?}");
    }
}

#[tokio::test]
async fn open_sessions_are_those_that_have_not_ended() {
    let states = [
        ("a", State::Creating),
        ("b", State::Ready),
        ("c", State::Busy),
        ("d", State::Destroying),
        ("e", State::Gone),
        ("f", State::Failed),
        ("g", State::Lost),
    ];
    let store = store_with(&states.map(|(name, state)| session(name, state, 0))).await;

    assert_eq!(names(&store.open_sessions().await.unwrap()), ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn a_state_changes_as_the_caller_decides_or_not_at_all() {
    let store = store_with(&[session("a", State::Ready, 0)]).await;
    let id = "a".parse().unwrap();

    let refused = store.advance(&id, Some(End::Idle), Err::<State, _>).await;
    let done = store.advance(&id, Some(End::Deleted), become_state(State::Destroying)).await;
    let missing =
        store.advance(&"b".parse().unwrap(), None, become_state(State::Gone)).await.unwrap();

    assert_eq!(refused.unwrap(), Transition::Refused(State::Ready));
    let Transition::Done(record) = done.unwrap() else { panic!("not done") };
    assert_eq!((record.state, record.end), (State::Destroying, Some(End::Deleted)));
    assert_eq!(missing, Transition::Missing);
}

#[tokio::test]
async fn the_first_reason_of_an_end_stays() {
    let store = store_with(&[session("a", State::Ready, 0)]).await;
    let id = "a".parse().unwrap();

    store.advance(&id, Some(End::Expired), become_state(State::Destroying)).await.unwrap();
    store.advance(&id, Some(End::SandboxLost), become_state(State::Gone)).await.unwrap();

    let record = store.session(&id).await.unwrap().unwrap();
    assert_eq!((record.state, record.end), (State::Gone, Some(End::Expired)));
}

#[tokio::test]
async fn only_a_session_that_goes_on_gets_another_deadline() {
    let store = store_with(&[session("a", State::Busy, 0), session("b", State::Gone, 0)]).await;

    assert!(store.set_deadline(&"a".parse().unwrap(), at(500)).await.unwrap());
    assert!(!store.set_deadline(&"b".parse().unwrap(), at(500)).await.unwrap());
    assert!(!store.set_deadline(&"c".parse().unwrap(), at(500)).await.unwrap());
    let record = store.session(&"a".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(record.expires, at(500));
}

#[tokio::test]
async fn a_session_is_busy_while_any_execution_runs_in_it() {
    let store = store_with(&[session("a", State::Ready, 0)]).await;
    let id = "a".parse().unwrap();
    let state = async || store.session(&id).await.unwrap().unwrap().state;
    let end = async |name: &str| {
        store.end_execution(name, ExecutionState::Ended, &json!({}), at(9)).await.unwrap()
    };

    store.begin_execution(&execution("x", "a")).await.unwrap();
    store.begin_execution(&execution("y", "a")).await.unwrap();
    assert_eq!(state().await, State::Busy);
    assert!(end("x").await);
    assert_eq!(state().await, State::Busy);
    assert!(end("y").await);

    assert_eq!(state().await, State::Ready);
    assert_eq!(store.session(&id).await.unwrap().unwrap().last_activity, at(9));
}

#[tokio::test]
async fn the_end_of_an_execution_does_not_revive_its_session() {
    let store = store_with(&[session("a", State::Ready, 0)]).await;
    let id = "a".parse().unwrap();
    store.begin_execution(&execution("x", "a")).await.unwrap();
    store.advance(&id, Some(End::Deleted), become_state(State::Destroying)).await.unwrap();

    store.end_execution("x", ExecutionState::Ended, &json!({}), at(9)).await.unwrap();

    assert_eq!(store.session(&id).await.unwrap().unwrap().state, State::Destroying);
}

#[tokio::test]
async fn a_result_is_written_once() {
    let store = Store::in_memory().await.unwrap();
    store.begin_execution(&execution("x", "a")).await.unwrap();
    store.execution_started("x", ProcessId(7)).await.unwrap();
    let end = async |state, result| store.end_execution("x", state, &result, at(9)).await.unwrap();

    let first = end(ExecutionState::Ended, json!({ "exit_code": 3 })).await;
    let second = end(ExecutionState::Refused, json!({ "exit_code": 4 })).await;

    assert!(first && !second);
    let expected = Execution {
        state: ExecutionState::Ended,
        process: Some(ProcessId(7)),
        result: Some(json!({ "exit_code": 3 })),
        ..execution("x", "a")
    };
    assert_eq!(store.execution("x").await.unwrap(), Some(expected));
    assert_eq!(store.running_executions().await.unwrap(), []);
    assert_eq!(store.execution("y").await.unwrap(), None);
}

#[tokio::test]
async fn running_executions_are_found_again() {
    let store = Store::in_memory().await.unwrap();
    store.begin_execution(&execution("x", "a")).await.unwrap();

    assert_eq!(store.running_executions().await.unwrap(), [execution("x", "a")]);
}

#[tokio::test]
async fn only_what_ended_long_ago_is_forgotten() {
    let store = store_with(&[
        session("old", State::Gone, 0),
        session("alive", State::Ready, 0),
        session("new", State::Gone, 100),
    ])
    .await;
    store.begin_execution(&execution("ended", "alive")).await.unwrap();
    store.end_execution("ended", ExecutionState::Ended, &json!({}), at(2)).await.unwrap();
    store.begin_execution(&execution("running", "alive")).await.unwrap();

    assert_eq!(store.forget_before(at(50)).await.unwrap(), 2);

    let left = store.sessions(&SessionsQuery { limit: 9, ..SessionsQuery::default() }).await;
    assert_eq!(names(&left.unwrap()), ["new", "alive"]);
    assert_eq!(store.execution("ended").await.unwrap(), None);
    assert!(store.execution("running").await.unwrap().is_some());
}

#[tokio::test]
async fn keys_are_found_listed_and_removed() {
    let store = Store::in_memory().await.unwrap();
    store.insert_key(&key("b", 2)).await.unwrap();
    store.insert_key(&key("a", 1)).await.unwrap();

    assert_eq!(store.key("id-a").await.unwrap(), Some(key("a", 1)));
    assert_eq!(store.keys().await.unwrap(), [key("a", 1), key("b", 2)]);
    let error = store.insert_key(&KeyRecord { id: "other".into(), ..key("a", 3) }).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(store.remove_key("a").await.unwrap());
    assert!(store.remove_key("id-b").await.unwrap());
    assert!(!store.remove_key("a").await.unwrap());
    assert_eq!(store.keys().await.unwrap(), []);
}
