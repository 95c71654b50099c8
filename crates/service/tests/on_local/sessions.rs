//! Sessions on the local engine: made, kept, listed and ended.

use std::time::Duration;

use atoll_engine::Engine as _;
use atoll_service::{Code, SessionFilter, Settings, Wanted};
use atoll_types::{
    limits::Limits,
    process::StartProcess,
    quantity::{Size, Span},
    session::{CreateSession, End, MountMode, MountRequest, State},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::world::{PATIENCE, World, environments, pairs, settings, shell, trusted};

fn seconds(seconds: u64) -> Span {
    Span(Duration::from_secs(seconds))
}

#[tokio::test]
async fn a_session_keeps_its_files() {
    let world = World::new().await;
    let service = world.service();
    let id = world.session().await.session_id;

    let content = stream::once(async { Ok(Bytes::from("kept")) }).boxed();
    service.write_file(&id, "notes/a.txt", content).await.unwrap();
    let seen = service.execute(&id, shell("cat notes/a.txt; echo more >> notes/a.txt")).await;
    let read: Vec<Bytes> =
        service.read_file(&id, "notes/a.txt").await.unwrap().try_collect().await.unwrap();

    assert_eq!(seen.unwrap().stdout, "kept");
    assert_eq!(read.concat(), b"keptmore\n");
    let names = service.list_files(&id, "notes").await.unwrap();
    assert_eq!(names.entries.len(), 1);
}

#[tokio::test]
async fn a_session_says_what_it_is() {
    let world = World::new().await;
    let request = CreateSession {
        environment: Some("Python3".to_owned()),
        engine: Some("local_shell".to_owned()),
        metadata: pairs([("who", "me")]),
        timeout: Some(seconds(600)),
        ..trusted()
    };

    let session = world.service().create_session(request).await.unwrap();

    assert_eq!((session.engine.as_str(), session.provider.as_str()), ("local", "local"));
    assert_eq!(session.environment, "python");
    assert_eq!(session.state, State::Ready);
    assert_eq!(session.url, format!("/api/sessions/{}", session.session_id));
    assert_eq!(session.expires_at.duration_since(session.created_at).as_secs(), 600);
    assert_eq!(session.limits.memory, None, "a default this engine refuses");
    assert_eq!(session.limits.open_files, Some(1024));
    assert_eq!(world.service().session(&session.session_id).await.unwrap(), session);
}

#[tokio::test]
async fn code_that_nobody_trusts_is_not_run_without_isolation() {
    let world = World::new().await;

    let error = world.service().create_session(CreateSession::default()).await.unwrap_err();

    assert_eq!(error.code, Code::EngineNotIsolating);
    assert!(error.hint.unwrap().contains("trusted"));
}

#[tokio::test]
async fn trust_takes_the_operator_too() {
    let world = World::with(Settings { allow_trusted: false, ..settings() }).await;

    let error = world.service().create_session(trusted()).await.unwrap_err();

    assert_eq!(error.code, Code::EngineNotIsolating);
}

#[tokio::test]
async fn no_engine_takes_the_place_of_one_that_is_missing() {
    let world = World::with(Settings { default_engine: "namespace".into(), ..settings() }).await;
    let named = CreateSession { engine: Some("docker".into()), ..trusted() };

    for (request, code) in [(trusted(), Code::EngineUnavailable), (named, Code::InvalidRequest)] {
        let error = world.service().create_session(request).await.unwrap_err();
        assert_eq!(error.code, code);
        assert_eq!(error.hint.as_deref(), Some("its engines: local"));
    }
    assert_eq!(world.sandboxes().await, []);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_name() {
    let world = World::new().await;
    let limits = Limits { pids: Some(0), ..Limits::default() };
    let mount = MountRequest { host: "/".to_owned(), guest: "/x".to_owned(), mode: MountMode::Rw };

    for (request, code, word) in [
        (
            CreateSession { environment: Some("nope".into()), ..trusted() },
            Code::InvalidRequest,
            "`environment`",
        ),
        (
            CreateSession { timeout: Some(seconds(0)), ..trusted() },
            Code::InvalidRequest,
            "`timeout`",
        ),
        (
            CreateSession { timeout: Some(seconds(1 << 30)), ..trusted() },
            Code::InvalidRequest,
            "`timeout`",
        ),
        (
            CreateSession { limits: Some(limits), ..trusted() },
            Code::InvalidRequest,
            "`limits.pids`",
        ),
        (CreateSession { env: pairs([("A=B", "c")]), ..trusted() }, Code::InvalidRequest, "`env`"),
        (
            CreateSession { metadata: pairs([("", "c")]), ..trusted() },
            Code::InvalidRequest,
            "`metadata`",
        ),
        (CreateSession { mounts: vec![mount], ..trusted() }, Code::Denied, "mounted"),
    ] {
        let error = world.service().create_session(request).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(word), "{error}");
    }
    assert_eq!(world.sandboxes().await, []);
}

#[tokio::test]
async fn a_session_that_cannot_be_made_leaves_a_failed_row_and_nothing_else() {
    let world = World::new().await;
    let limits = Limits { memory: Some(Size(64 << 20)), ..Limits::default() };

    let error = world
        .service()
        .create_session(CreateSession { limits: Some(limits), ..trusted() })
        .await
        .unwrap_err();

    assert_eq!(error.code, Code::Unsupported);
    let page = world.service().sessions(SessionFilter::default()).await.unwrap();
    assert_eq!(page.sessions, []);
    let all = SessionFilter { state: Wanted::All, ..SessionFilter::default() };
    let page = world.service().sessions(all).await.unwrap();
    let [session] = &page.sessions[..] else { panic!("{page:?}") };
    assert_eq!((session.state, session.end), (State::Failed, Some(End::CreateFailed)));
    assert_eq!(world.sandboxes().await, []);
}

#[tokio::test]
async fn a_deleted_session_leaves_nothing_and_is_not_found_again() {
    let world = World::new().await;
    let service = world.service();
    let session = world.session().await;
    let id = &session.session_id;

    let other = "another".parse().unwrap();
    let conflict = service.delete_session(id, Some(&other)).await.unwrap_err();
    assert_eq!(conflict.code, Code::Conflict);
    assert_eq!(world.sandboxes().await, [session.sandbox_id.clone()]);
    service.delete_session(id, Some(&session.sandbox_id)).await.unwrap();

    assert_eq!(world.sandboxes().await, []);
    for sandbox in [None, Some(&other)] {
        let again = service.delete_session(id, sandbox).await.unwrap_err();
        assert_eq!(again.code, Code::NotFound);
    }
    let used = service.execute(id, shell("true")).await.unwrap_err();
    assert_eq!(used.code, Code::NotFound);
    assert!(used.message.contains("deleted"), "{used}");
    assert_eq!(service.session(id).await.unwrap().end, Some(End::Deleted));
    let unknown = service.session(&"nobody".parse().unwrap()).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
}

#[tokio::test]
async fn a_deadline_ends_a_session_whatever_it_is_doing() {
    let world = World::new().await;
    let id = world.session().await.session_id;
    let busy = StartProcess { command: shell("sleep 1000").command, ..StartProcess::default() };
    world.service().start_process(&id, busy).await.unwrap();

    world.service().set_timeout(&id, Span(Duration::from_millis(1))).await.unwrap();

    assert_eq!(world.until_ended(&id).await, Some(End::Expired));
    assert_eq!(world.sandboxes().await, []);
}

#[tokio::test]
async fn a_deadline_can_be_moved_away() {
    let world = World::new().await;
    let session = world.session().await;

    let moved = world.service().set_timeout(&session.session_id, seconds(40_000)).await.unwrap();

    assert!(moved.expires_at > session.expires_at);
    let read = world.service().session(&session.session_id).await.unwrap();
    assert_eq!(read.expires_at, moved.expires_at);
}

#[tokio::test]
async fn a_session_in_which_a_process_runs_is_not_idle() {
    let idle_timeout = Some(Duration::from_secs(1));
    let world = World::with(Settings { idle_timeout, ..settings() }).await;
    let service = world.service();
    let works = world.session().await.session_id;
    let process = StartProcess { command: shell("sleep 1000").command, ..StartProcess::default() };
    let process = service.start_process(&works, process).await.unwrap().id;
    let idles = world.session().await.session_id;

    // By then the first one has been quiet for longer.
    assert_eq!(world.until_ended(&idles).await, Some(End::Idle));
    assert_eq!(service.session(&works).await.unwrap().state, State::Ready);
    service.kill_process(&works, process).await.unwrap();

    assert_eq!(world.until_ended(&works).await, Some(End::Idle));
    assert_eq!(world.sandboxes().await, []);
}

#[tokio::test]
async fn a_session_with_an_open_stream_is_not_idle() {
    let idle_timeout = Some(Duration::from_secs(1));
    let world = World::with(Settings { idle_timeout, ..settings() }).await;
    let service = world.service();
    let read = world.session().await.session_id;
    let content = stream::once(async { Ok(Bytes::from(vec![7; 4 << 20])) }).boxed();
    service.write_file(&read, "large", content).await.unwrap();
    let reader = service.read_file(&read, "large").await.unwrap();
    let idles = world.session().await.session_id;

    assert_eq!(world.until_ended(&idles).await, Some(End::Idle));
    assert_eq!(service.session(&read).await.unwrap().state, State::Ready);
    drop(reader);

    assert_eq!(world.until_ended(&read).await, Some(End::Idle));
}

#[tokio::test]
async fn a_sandbox_that_goes_away_by_itself_is_a_lost_session() {
    let world = World::new().await;
    let session = world.session().await;

    world.engine().destroy(&session.sandbox_id).await.unwrap();

    let lost = world.until(&session.session_id, State::Lost).await;
    assert_eq!(lost.end, Some(End::SandboxLost));
    let error = world.service().execute(&session.session_id, shell("true")).await.unwrap_err();
    assert_eq!(error.code, Code::SessionLost);
    let again = world.service().delete_session(&session.session_id, None).await.unwrap_err();
    assert_eq!(again.code, Code::SessionLost);
}

#[tokio::test]
async fn there_are_no_more_sandboxes_than_allowed() {
    let world = World::with(Settings { max_sessions: 1, ..settings() }).await;
    let id = world.session().await.session_id;

    let error = world.service().create_session(trusted()).await.unwrap_err();
    assert_eq!(error.code, Code::TooManySessions);
    assert!(error.hint.is_some());
    world.service().delete_session(&id, None).await.unwrap();

    world.session().await;
}

#[tokio::test]
async fn a_maker_that_goes_away_leaves_nothing() {
    let world = World::new().await;
    let mut create = Box::pin(world.service().create_session(trusted()));

    // Far enough to have begun: from then on it is no longer this future's work.
    assert!(futures_util::poll!(&mut create).is_pending());
    drop(create);

    let began = std::time::Instant::now();
    loop {
        let all = SessionFilter { state: Wanted::All, ..SessionFilter::default() };
        let page = world.service().sessions(all).await.unwrap();
        if let [session] = &page.sessions[..]
            && session.state == State::Gone
        {
            assert_eq!(session.end, Some(End::Deleted));
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{page:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.until_empty().await;
}

#[tokio::test]
async fn sessions_are_listed_in_pages_and_by_what_they_are() {
    let world = World::new().await;
    let service = world.service();
    let mut ids = Vec::new();
    for who in ["a", "b", "c"] {
        let request = CreateSession { metadata: pairs([("who", who)]), ..trusted() };
        ids.push(service.create_session(request).await.unwrap().session_id);
    }
    service.delete_session(&ids[0], None).await.unwrap();
    let list = async |filter| {
        let page = service.sessions(filter).await.unwrap();
        let ids: Vec<_> = page.sessions.into_iter().map(|session| session.session_id).collect();
        (ids, page.next)
    };

    let (living, end) = list(SessionFilter { limit: Some(2), ..Default::default() }).await;
    assert_eq!((living, end), (vec![ids[2].clone(), ids[1].clone()], None));
    let all = SessionFilter { state: Wanted::All, ..Default::default() };
    let (first, next) = list(SessionFilter { limit: Some(2), ..all.clone() }).await;
    assert_eq!(first, [ids[2].clone(), ids[1].clone()]);
    let (rest, end) = list(SessionFilter { after: next, ..all.clone() }).await;
    assert_eq!((rest, end), (vec![ids[0].clone()], None));

    for (state, found) in [(State::Ready, 2), (State::Gone, 1), (State::Failed, 0)] {
        let by_state = SessionFilter { state: Wanted::In(state), ..Default::default() };
        assert_eq!(list(by_state).await.0.len(), found, "{state:?}");
    }
    let by_metadata = SessionFilter { metadata: pairs([("who", "b")]), ..Default::default() };
    assert_eq!(list(by_metadata).await.0, [ids[1].clone()]);
    let by_alias = SessionFilter { engine: Some("local_shell".into()), ..all };
    assert_eq!(list(by_alias).await.0.len(), 3);
    for wrong in [
        SessionFilter { after: Some("x".into()), ..Default::default() },
        SessionFilter { limit: Some(0), ..Default::default() },
        SessionFilter { limit: Some(1001), ..Default::default() },
    ] {
        assert_eq!(service.sessions(wrong).await.unwrap_err().code, Code::InvalidRequest);
    }
}

#[tokio::test]
async fn variables_come_from_the_environment_the_session_and_the_request() {
    let place = tempfile::tempdir().unwrap();
    let environments = Some(environments(place.path()));
    let world = World::at(place, Settings { environments, ..settings() }).await;
    let request = CreateSession {
        environment: Some("tests".into()),
        env: pairs([("SAID", "by the session"), ("ALSO", "session")]),
        ..trusted()
    };
    let id = world.service().create_session(request).await.unwrap().session_id;
    let mut run = shell("echo $KEPT, $SAID, $ALSO");

    let before = world.service().execute(&id, run.clone()).await.unwrap();
    run.env = pairs([("ALSO", "the request")]);
    let after = world.service().execute(&id, run).await.unwrap();

    assert_eq!(before.stdout, "yes, by the session, session\n");
    assert_eq!(after.stdout, "yes, by the session, the request\n");
}

#[tokio::test]
async fn the_server_says_what_it_has() {
    let world = World::new().await;

    let engines = world.service().engines().await.unwrap();
    let environments = world.service().environments().await.unwrap();

    assert_eq!(engines.len(), 1);
    assert!(engines[0].available && !engines[0].grades.is_empty());
    let names: Vec<_> = environments.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["base", "bash", "node", "python"]);
}

#[tokio::test]
async fn a_stop_may_end_the_sessions() {
    let world = World::with(Settings { end_sessions_on_shutdown: true, ..settings() }).await;
    world.session().await;

    world.service().shutdown().await;

    assert_eq!(world.sandboxes().await, []);
}

#[tokio::test]
async fn a_key_opens_until_it_is_removed() {
    let world = World::new().await;
    let service = world.service();
    let create = atoll_types::key::CreateKey { name: "mine".into(), scopes: None };

    let new = service.create_key(create.clone()).await.unwrap();
    let who = service.authenticate(&new.key).await.unwrap().unwrap();
    assert_eq!((who.key_id, who.scopes), (new.about.id.clone(), new.about.scopes.clone()));
    let twice = service.create_key(create).await.unwrap_err();
    assert_eq!(twice.code, Code::Conflict);
    assert_eq!(service.keys().await.unwrap(), [new.about.clone()]);
    assert_eq!(service.authenticate("atoll_nothing").await.unwrap(), None);
    service.remove_key("mine").await.unwrap();

    assert_eq!(service.authenticate(&new.key).await.unwrap(), None);
    assert_eq!(service.remove_key("mine").await.unwrap_err().code, Code::NotFound);
}
