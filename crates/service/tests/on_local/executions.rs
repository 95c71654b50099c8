//! Executions on the local engine: what is asked for, what comes of it, what is recorded.

use std::time::Duration;

use atoll_engine::Event;
use atoll_service::{Code, Offsets, Settings};
use atoll_store::ExecutionState;
use atoll_types::{
    execution::{CommandLine, ExecuteRequest, ExecutionResult, OneShotRequest, Reason, Status},
    limits::Limits,
    process::StartProcess,
    quantity::{Size, Span},
    session::{CreateSession, State},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use crate::world::{PATIENCE, World, code, environments, pairs, settings, shell, trusted};

async fn run(world: &World, request: ExecuteRequest) -> ExecutionResult {
    let id = world.session().await.session_id;
    world.service().execute(&id, request).await.unwrap()
}

fn once(command: &str) -> OneShotRequest {
    OneShotRequest {
        command: Some(CommandLine::Shell(command.to_owned())),
        trusted: true,
        ..OneShotRequest::default()
    }
}

async fn with_languages() -> (World, CreateSession) {
    let place = tempfile::tempdir().unwrap();
    let environments = Some(environments(place.path()));
    let world = World::at(place, Settings { environments, ..settings() }).await;
    (world, CreateSession { environment: Some("tests".into()), ..trusted() })
}

#[tokio::test]
async fn an_exit_code_is_the_programs_own() {
    let world = World::new().await;
    let session = world.session().await;

    for (exit, status) in [(0, Status::Succeeded), (1, Status::Failed), (255, Status::Failed)] {
        let line = format!("echo out; echo err >&2; exit {exit}");
        let result = world.service().execute(&session.session_id, shell(&line)).await.unwrap();

        assert_eq!((result.reason, result.exit_code), (Reason::Exited, Some(exit)));
        assert_eq!((result.status, result.signal), (status, None));
        assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(result.session_id, session.session_id);
        assert_eq!(result.sandbox_id, session.sandbox_id);
        assert!(result.state_survived && !result.truncated && result.hint.is_none());
    }
}

#[tokio::test]
async fn a_signal_is_told_as_a_signal() {
    let world = World::new().await;

    let result = run(&world, shell("kill -SEGV $$")).await;

    assert_eq!((result.reason, result.signal), (Reason::Signaled, Some(11)));
    assert_eq!((result.exit_code, result.status), (None, Status::Failed));
}

#[tokio::test]
async fn a_timeout_is_told_with_what_was_written_before_it() {
    let world = World::new().await;
    let request = ExecuteRequest {
        timeout: Some(Span(Duration::from_secs(5))),
        ..shell("echo before; sleep 1000")
    };

    let result = run(&world, request).await;

    assert_eq!((result.reason, result.status), (Reason::Timeout, Status::Failed));
    assert_eq!(result.stdout, "before\n");
    assert!(result.hint.unwrap().contains("`timeout`"));
    assert!(result.state_survived);
}

#[tokio::test]
async fn too_much_output_is_told_and_cut() {
    let world = World::new().await;
    let limits = Limits { output: Some(Size(1000)), ..Limits::default() };
    let request = CreateSession { limits: Some(limits), ..trusted() };
    let id = world.service().create_session(request).await.unwrap().session_id;

    let result = world.service().execute(&id, shell("yes")).await.unwrap();

    assert_eq!(result.reason, Reason::OutputLimit);
    assert!(result.truncated && result.stdout.len() <= 1000, "{}", result.stdout.len());
    assert!(result.hint.unwrap().contains("`limits.output`"));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_told_exactly() {
    let world = World::new().await;

    let result = run(&world, shell(r"printf 'a\377b'")).await;

    assert_eq!(result.stdout, "a\u{fffd}b");
    assert_eq!(result.stdout_base64.as_deref(), Some("Yf9i"));
    assert_eq!(result.stderr_base64, None);
}

#[tokio::test]
async fn input_arguments_variables_and_directory_reach_the_program() {
    let world = World::new().await;
    let request = ExecuteRequest {
        stdin: Some("from stdin".to_owned()),
        args: vec!["-x".to_owned(), "two words".to_owned()],
        env: pairs([("NAME", "value")]),
        cwd: Some("/".to_owned()),
        ..code("sh", r#"cat; echo " $1 $2 $NAME $PWD""#)
    };

    let result = run(&world, request).await;

    assert_eq!(result.stdout, "from stdin -x two words value /\n");
}

#[tokio::test]
async fn a_program_that_does_not_read_its_input_still_ends() {
    let world = World::new().await;
    let request = ExecuteRequest { stdin: Some("x".repeat(1 << 20)), ..shell("exec true") };

    let result = run(&world, request).await;

    assert_eq!((result.reason, result.exit_code), (Reason::Exited, Some(0)));
}

#[tokio::test]
async fn code_means_the_same_however_long_it_is() {
    let world = World::new().await;
    let id = world.session().await.session_id;
    let padding = "#".repeat(100_000);
    let short = r#"echo "$1"; value=3; [ $value = 3 ] && exit 7"#;

    for language in ["sh", "bash"] {
        for text in [short.to_owned(), format!("{short}\n{padding}")] {
            for cwd in [None, Some("/".to_owned())] {
                let request = ExecuteRequest {
                    args: vec!["arg".to_owned()],
                    cwd: cwd.clone(),
                    ..code(language, &text)
                };
                let result = world.service().execute(&id, request).await.unwrap();
                let (out, exit) = (result.stdout.as_str(), result.exit_code);
                assert_eq!((out, exit), ("arg\n", Some(7)), "{language} {cwd:?} {}", result.stderr);
            }
        }
    }
}

#[tokio::test]
async fn a_file_of_the_sandbox_runs_with_its_language() {
    let world = World::new().await;
    let id = world.session().await.session_id;
    let content = stream::once(async { Ok(Bytes::from("echo file $1")) }).boxed();
    world.service().write_file(&id, "-odd.sh", content).await.unwrap();
    let request = ExecuteRequest {
        file: Some("-odd.sh".to_owned()),
        args: vec!["here".to_owned()],
        ..ExecuteRequest::default()
    };

    let result = world.service().execute(&id, request).await.unwrap();

    assert_eq!(result.stdout, "file here\n", "{}", result.stderr);
}

#[tokio::test]
async fn compiled_code_is_compiled_then_run() {
    let (world, request) = with_languages().await;
    let service = world.service();
    let id = service.create_session(request).await.unwrap().session_id;

    for cwd in [None, Some("/".to_owned())] {
        let good = ExecuteRequest {
            cwd,
            args: vec!["arg".to_owned()],
            ..code("script", "#!/bin/sh\n# valid\necho ran $1")
        };
        let result = service.execute(&id, good).await.unwrap();
        assert_eq!(result.stdout, "ran arg\n", "{}", result.stderr);
    }
    let bad = service.execute(&id, code("script", "#!/bin/sh\necho ran")).await.unwrap();
    assert_eq!((bad.status, bad.stdout.as_str()), (Status::Failed, ""));
    assert_eq!(bad.hint.as_deref(), Some("it did not compile"));
    let started = StartProcess {
        code: Some("nothing".into()),
        language: Some("script".into()),
        ..StartProcess::default()
    };
    let error = service.start_process(&id, started).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidRequest);
}

#[tokio::test]
async fn a_missing_interpreter_is_named() {
    let (world, request) = with_languages().await;
    let id = world.service().create_session(request).await.unwrap().session_id;

    for (language, word) in [("absent", "`no-such-program-anywhere`"), ("future", "2.0")] {
        let error = world.service().execute(&id, code(language, "x")).await.unwrap_err();
        assert_eq!(error.code, Code::InterpreterMissing);
        assert!(error.message.contains(word), "{error}");
    }
    assert_eq!(world.store.running_executions().await.unwrap(), []);
    world.until(&id, State::Ready).await;
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let world = World::new().await;
    let id = world.session().await.session_id;
    let words = CommandLine::Words(vec!["no-such-program".to_owned()]);
    let request = ExecuteRequest { command: Some(words), ..ExecuteRequest::default() };

    let error = world.service().execute(&id, request).await.unwrap_err();

    assert_eq!(error.code, Code::ProgramMissing);
    assert!(error.message.contains("`no-such-program`"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_by_name() {
    let world = World::new().await;
    let id = world.session().await.session_id;
    let words = |words: &[&str]| {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        ExecuteRequest { command: Some(CommandLine::Words(words)), ..ExecuteRequest::default() }
    };

    for (request, word) in [
        (ExecuteRequest::default(), "`code`"),
        (ExecuteRequest { file: Some("x.sh".into()), ..shell("true") }, "`code`"),
        (ExecuteRequest { language: Some("sh".into()), ..shell("true") }, "`language`"),
        (ExecuteRequest { args: vec!["x".into()], ..shell("true") }, "`args`"),
        (ExecuteRequest { timeout: Some(Span(Duration::ZERO)), ..shell("true") }, "`timeout`"),
        (ExecuteRequest { env: pairs([("", "x")]), ..shell("true") }, "`env`"),
        (ExecuteRequest { cwd: Some("a\0b".into()), ..shell("true") }, "`cwd`"),
        (code("cobol", "x"), "`cobol`"),
        (code("sh", "a\0b"), "`code`"),
        (words(&[]), "`command`"),
        (words(&[""]), "`command`"),
        (words(&["a\0"]), "`command`"),
    ] {
        let error = world.service().execute(&id, request.clone()).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest, "{request:?}");
        assert!(error.message.contains(word), "{error}");
    }
}

#[tokio::test]
async fn every_execution_has_one_recorded_result() {
    let world = World::new().await;
    let result = run(&world, shell("echo kept; exit 3")).await;

    let record = world.store.execution(&result.id).await.unwrap().unwrap();

    assert_eq!(record.state, ExecutionState::Ended);
    assert_eq!(record.summary, "echo kept; exit 3");
    let told: ExecutionResult = serde_json::from_value(record.result.unwrap()).unwrap();
    assert_eq!(told, result);
}

#[tokio::test]
async fn executions_run_side_by_side() {
    let world = World::new().await;
    let service = world.service();
    let id = world.session().await.session_id;

    // Each waits for the other.
    let meet = |mine: &str, others: &str| {
        shell(&format!("touch {mine}; until [ -e {others} ]; do sleep 0.01; done"))
    };
    let (one, two) =
        tokio::join!(service.execute(&id, meet("a", "b")), service.execute(&id, meet("b", "a")));

    assert_eq!((one.unwrap().exit_code, two.unwrap().exit_code), (Some(0), Some(0)));
    world.until(&id, State::Ready).await;
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_its_execution() {
    let world = World::new().await;
    let id = world.session().await.session_id;
    let service = world.service().clone();
    let session = id.clone();
    let caller =
        tokio::spawn(
            async move { service.execute(&session, shell("touch started; sleep 1000")).await },
        );
    world.until_file(&id, "started").await;
    assert_eq!(world.service().session(&id).await.unwrap().state, State::Busy);
    let running = world.store.running_executions().await.unwrap();

    caller.abort();

    world.until(&id, State::Ready).await;
    let record = world.store.execution(&running[0].id).await.unwrap().unwrap();
    let result: ExecutionResult = serde_json::from_value(record.result.unwrap()).unwrap();
    assert_eq!(result.reason, Reason::Cancelled);
    let processes = world.service().processes(&id).await.unwrap();
    assert!(processes.iter().all(|process| process.end.is_some()));
}

#[tokio::test]
async fn an_execution_whose_session_is_deleted_is_lost_and_says_why() {
    let world = World::new().await;
    let id = world.session().await.session_id;
    let service = world.service().clone();
    let session = id.clone();
    let caller =
        tokio::spawn(
            async move { service.execute(&session, shell("touch started; sleep 1000")).await },
        );
    world.until_file(&id, "started").await;

    world.service().delete_session(&id, None).await.unwrap();

    let result = caller.await.unwrap().unwrap();
    assert_eq!((result.reason, result.state_survived), (Reason::Lost, false));
    assert!(result.hint.unwrap().contains("deleted"));
}

#[tokio::test]
async fn a_one_shot_leaves_nothing() {
    let world = World::new().await;

    let result = world.service().execute_once(once("echo once; exit 4")).await.unwrap();

    assert_eq!((result.stdout.as_str(), result.exit_code), ("once\n", Some(4)));
    assert!(!result.state_survived);
    assert_eq!(world.sandboxes().await, []);
    let error = world.service().session(&result.session_id).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[tokio::test]
async fn a_one_shot_that_cannot_run_leaves_nothing() {
    let world = World::new().await;
    let untrusted = OneShotRequest { trusted: false, ..once("true") };
    let nothing = OneShotRequest { command: None, ..once("true") };
    let missing = OneShotRequest {
        command: Some(CommandLine::Words(vec!["no-such-program".into()])),
        ..once("true")
    };

    for (request, code) in [
        (untrusted, Code::EngineNotIsolating),
        (nothing, Code::InvalidRequest),
        (missing, Code::ProgramMissing),
    ] {
        assert_eq!(world.service().execute_once(request).await.unwrap_err().code, code);
        assert_eq!(world.sandboxes().await, []);
    }
}

#[tokio::test]
async fn a_one_shot_whose_caller_goes_away_leaves_nothing() {
    let world = World::new().await;
    let mark = world.path().join("started");
    let line = format!("touch {}; sleep 1000", mark.display());
    let service = world.service().clone();
    let caller = tokio::spawn(async move { service.execute_once(once(&line)).await });
    let began = std::time::Instant::now();
    while !mark.exists() {
        assert!(began.elapsed() < PATIENCE, "it did not start");
        assert!(!caller.is_finished(), "it ended: {:?}", caller.await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    caller.abort();

    world.until_empty().await;
}

#[tokio::test]
async fn a_process_goes_on_and_is_read_from_any_offset() {
    let world = World::new().await;
    let service = world.service();
    let id = world.session().await.session_id;
    let start = StartProcess {
        command: shell("cat; exit 5").command,
        stdin: true,
        ..StartProcess::default()
    };

    let process = service.start_process(&id, start).await.unwrap();
    service.write_stdin(&id, process.id, Bytes::from("hello world")).await.unwrap();
    service.close_stdin(&id, process.id).await.unwrap();
    let from = Offsets { stdout: 6, stderr: 0 };
    let events: Vec<_> =
        service.attach_process(&id, process.id, from).await.unwrap().collect().await;

    let mut output = Vec::new();
    let mut outcome = None;
    for event in events {
        match event.unwrap() {
            Event::Output { data, .. } => output.extend_from_slice(&data),
            Event::Ended(ended) => outcome = Some(ended),
        }
    }
    assert_eq!(output, b"world");
    assert_eq!(outcome.unwrap().exit_code, Some(5));
    let told = service.process(&id, process.id).await.unwrap();
    assert_eq!(told.end.unwrap().exit_code, Some(5));
    let wrong = service.signal_process(&id, process.id, 0).await.unwrap_err();
    assert_eq!(wrong.code, Code::InvalidRequest);
    let ended = service.signal_process(&id, process.id, 15).await.unwrap_err();
    assert_eq!(ended.code, Code::NotFound);
    let none = service.process(&id, atoll_types::id::ProcessId(999)).await.unwrap_err();
    assert_eq!(none.code, Code::NotFound);
}
