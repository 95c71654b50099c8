//! The same stories with containers, and a Docker daemon that dies too.

use std::{
    io::Write as _,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use atoll_client::Client;
use atoll_e2e::{Daemon, Harbour};
use atoll_types::{
    execution::{CommandLine, ExecuteRequest, ExecutionResult, Reason},
    id::SessionId,
    process::StartProcess,
    session::{CreateSession, State},
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinHandle;

const CYCLES: usize = 500;
const CLIENTS: usize = 4;

/// How long anything may take before it is a failure.
const PATIENCE: Duration = Duration::from_mins(2);

fn main() -> ExitCode {
    let missing = atoll_test_dockerd::missing().map(|missing| missing.to_string());
    atoll_e2e::tell_unless(
        missing.as_deref(),
        vec![
            ("the_container_dies_in_mid_execution", || {
                Box::pin(the_container_dies_in_mid_execution())
            }),
            ("the_docker_daemon_dies_in_mid_execution", || {
                Box::pin(the_docker_daemon_dies_in_mid_execution())
            }),
            ("the_server_dies_and_containers_go_on", || {
                Box::pin(the_server_dies_and_containers_go_on())
            }),
            ("five_hundred_containers_leave_nothing", || {
                Box::pin(five_hundred_containers_leave_nothing())
            }),
        ],
    )
}

/// A session in which something long is being executed, and the number its result will come by.
async fn busy(daemon: &Daemon) -> Result<(SessionId, JoinHandle<Result<ExecutionResult>>)> {
    let client = daemon.client();
    let session = client.create_session(&CreateSession::default()).await?.session_id;
    let line = "touch begun; sleep 1000 & exec sleep 1000";
    let request = ExecuteRequest {
        command: Some(CommandLine::Shell(line.into())),
        ..ExecuteRequest::default()
    };
    let executing = {
        let (client, session) = (client.clone(), session.clone());
        tokio::spawn(async move { Ok(client.execute(&session, &request).await?) })
    };
    let deadline = Instant::now() + PATIENCE;
    while !client.file_exists(&session, "begun").await? {
        ensure!(Instant::now() < deadline, "the execution did not begin");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok((session, executing))
}

/// The execution is told as lost, and so is the session.
async fn lost(
    client: &Client,
    session: &SessionId,
    executing: JoinHandle<Result<ExecutionResult>>,
) -> Result<()> {
    let result = tokio::time::timeout(PATIENCE, executing).await.context("it never ended")???;
    ensure!(result.reason == Reason::Lost, "{result:?}");
    ensure!(!result.state_survived, "{result:?}");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = client.session(session).await?.state;
        if state == State::Lost {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the session is {state:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// It works as if nothing had been.
async fn works(client: &Client) -> Result<()> {
    let session = client.create_session(&CreateSession::default()).await?.session_id;
    let request = ExecuteRequest {
        command: Some(CommandLine::Shell("echo works".into())),
        ..ExecuteRequest::default()
    };
    let result = client.execute(&session, &request).await?;
    ensure!(result.stdout == "works\n", "{result:?}");
    client.delete_session(&session, None).await?;
    Ok(())
}

async fn the_container_dies_in_mid_execution() -> Result<()> {
    let harbour = Harbour::open()?;
    let daemon = harbour.server().await?;
    let (session, executing) = busy(&daemon).await?;
    harbour.would_see(daemon.data())?;

    let names = harbour.dockerd.containers();
    let told = harbour.dockerd.inspect(names[0].trim_start_matches('/'));
    let pid = told["State"]["Pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    kill_process(pid.and_then(Pid::from_raw).context("its first process")?, Signal::KILL)?;

    lost(&daemon.client(), &session, executing).await?;
    harbour.nothing_left(daemon.data()).await?;
    works(&daemon.client()).await?;
    harbour.nothing_left(daemon.data()).await?;
    daemon.stop().await?;
    Ok(())
}

async fn the_docker_daemon_dies_in_mid_execution() -> Result<()> {
    let mut harbour = Harbour::open()?;
    let daemon = harbour.server().await?;
    let (session, executing) = busy(&daemon).await?;
    harbour.would_see(daemon.data())?;

    harbour.dockerd.kill();
    // Without the daemon nothing new can be made, and that is said.
    let refused = daemon.client().create_session(&CreateSession::default()).await;
    ensure!(refused.is_err(), "{refused:?}");
    harbour.dockerd.restart();

    // A daemon that comes back without live restore ends what ran.
    lost(&daemon.client(), &session, executing).await?;
    works(&daemon.client()).await?;
    harbour.nothing_left(daemon.data()).await?;
    daemon.stop().await?;
    Ok(())
}

async fn the_server_dies_and_containers_go_on() -> Result<()> {
    let harbour = Harbour::open()?;
    let daemon = harbour.server().await?;
    let client = daemon.client();
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let session = client.create_session(&CreateSession::default()).await?.session_id;
        let line = "until [ -e stop ]; do sleep 0.05; done; echo went on; exit 3";
        let start = StartProcess {
            command: Some(CommandLine::Shell(line.into())),
            ..StartProcess::default()
        };
        let process = client.start_process(&session, &start).await?.id;
        sessions.push((session, process));
    }
    let (session, executing) = busy(&daemon).await?;
    harbour.would_see(daemon.data())?;

    let daemon = daemon.crash_and_restart().await?;
    ensure!(executing.await?.is_err(), "whose server died has no result");
    let client = daemon.client();
    for (session, process) in &sessions {
        let state = client.session(session).await?.state;
        ensure!(matches!(state, State::Ready | State::Busy), "{session} is {state:?}");
        client.write_bytes(session, "stop", "now").await?;
        let deadline = Instant::now() + PATIENCE;
        let end = loop {
            if let Some(end) = client.process(session, *process).await?.end {
                break end;
            }
            ensure!(Instant::now() < deadline, "the process did not go on");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        ensure!(end.exit_code == Some(3), "{end:?}");
        client.delete_session(session, None).await?;
    }
    client.delete_session(&session, None).await?;

    harbour.nothing_left(daemon.data()).await?;
    daemon.stop().await?;
    Ok(())
}

async fn five_hundred_containers_leave_nothing() -> Result<()> {
    let harbour = Harbour::open()?;
    let daemon = harbour.server().await?;
    let first = daemon.client().create_session(&CreateSession::default()).await?;
    harbour.would_see(daemon.data())?;
    daemon.client().delete_session(&first.session_id, None).await?;
    harbour.nothing_left(daemon.data()).await?;

    let done = Arc::new(AtomicUsize::new(0));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (client, done) = (daemon.client(), Arc::clone(&done));
        clients.spawn(async move { cycles(&client, CYCLES / CLIENTS, &done).await });
    }
    while let Some(made) = clients.join_next().await {
        made??;
    }

    harbour.nothing_left(daemon.data()).await?;
    daemon.stop().await?;
    Ok(())
}

/// Create, execute, destroy, so many times.
async fn cycles(client: &Client, count: usize, done: &AtomicUsize) -> Result<()> {
    let request = ExecuteRequest {
        command: Some(CommandLine::Shell("echo $$ > f; sleep 1000 & cat f".into())),
        ..ExecuteRequest::default()
    };
    for cycle in 0..count {
        let session = client.create_session(&CreateSession::default()).await?.session_id;
        let result = client.execute(&session, &request).await?;
        if result.exit_code != Some(0) {
            bail!("cycle {cycle}: {result:?}");
        }
        client.delete_session(&session, None).await?;
        let all = done.fetch_add(1, Ordering::Relaxed) + 1;
        if all.is_multiple_of(100) {
            // Progress is for people; that it cannot be shown is no failure.
            let _ = writeln!(std::io::stderr(), "{all} of {CYCLES}");
        }
    }
    Ok(())
}
