//! The real agent, run here without any isolation.

use std::{
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::net::UnixListener,
    },
    path::PathBuf,
    process::{Child, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use atoll_agent_client::{AgentSandbox, Counters, Link, Warden, agent_memfd};
use atoll_agent_protocol::message::Boot;
use atoll_engine::{
    Command, Error, ErrorKind, Event, Limits, Offsets, Output, Reason, Result, Sandbox, exec,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use prost::Message as _;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

/// Keeps an agent and its directory until it is dropped.
#[derive(Debug)]
struct Keeper {
    directory: TempDir,
    /// Opened by the shell in its own time.
    _program: OwnedFd,
    agent: Mutex<Child>,
    gone: CancellationToken,
}

impl Keeper {
    fn new() -> Arc<Self> {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_str().unwrap().to_owned();
        let boot = Boot {
            listener_fd: 4,
            disk: home.clone(),
            home,
            env: vec!["PATH=/usr/bin:/bin".to_owned()],
            ..Boot::default()
        };
        std::fs::write(directory.path().join("boot"), boot.encode_to_vec()).unwrap();
        let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
        let program = agent_memfd().unwrap();
        let agent = std::process::Command::new("/bin/sh")
            .args(["-c", "exec \"$0\" 3<boot 4<&0 </dev/null"])
            .arg(format!("/proc/{}/fd/{}", std::process::id(), program.as_raw_fd()))
            .current_dir(directory.path())
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .spawn()
            .unwrap();
        let gone = CancellationToken::new();
        Arc::new(Self { directory, _program: program, agent: Mutex::new(agent), gone })
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn stop(&self) {
        let mut agent = self.agent.lock().unwrap();
        let _ = agent.kill();
        let _ = agent.wait();
    }

    async fn sandbox(self: &Arc<Self>) -> Arc<dyn Sandbox> {
        let warden: Arc<dyn Warden> = Arc::clone(self) as Arc<dyn Warden>;
        let id = "real".parse().unwrap();
        AgentSandbox::connect(id, warden, Limits::default()).await.unwrap()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

#[async_trait]
impl Warden for Keeper {
    async fn connect(&self) -> Result<Box<dyn Link>> {
        let link = UnixStream::connect(self.socket()).await;
        Ok(Box::new(link.map_err(|error| Error::unavailable("no link").because(error))?))
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    async fn ended(&self) {
        self.gone.cancelled().await;
    }

    async fn destroy(&self) -> Result<()> {
        self.stop();
        self.gone.cancel();
        Ok(())
    }
}

async fn run(sandbox: &Arc<dyn Sandbox>, line: &str, stdin: Option<&'static [u8]>) -> Output {
    let command = Command::shell(line).timeout(Duration::from_mins(1));
    exec(sandbox, command, stdin.map(Bytes::from_static)).await.unwrap()
}

#[tokio::test]
async fn a_command_runs_and_its_end_is_told() {
    let keeper = Keeper::new();
    let sandbox = keeper.sandbox().await;

    let output = run(&sandbox, "cat; echo wrong >&2; exit 7", Some(b"right")).await;

    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"right"[..], &b"wrong\n"[..]));
    assert_eq!((output.outcome.reason, output.outcome.exit_code), (Reason::Exited, Some(7)));
    assert!(output.outcome.sandbox_survived);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_not_found() {
    let keeper = Keeper::new();
    let sandbox = keeper.sandbox().await;

    let error = sandbox.start(Command::new(["no-such-program"])).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn a_timeout_and_a_kill_are_told_apart() {
    let keeper = Keeper::new();
    let sandbox = keeper.sandbox().await;

    let command = Command::shell("sleep 1000").timeout(Duration::from_millis(200));
    let late = exec(&sandbox, command, None).await.unwrap().outcome;
    let process = sandbox.start(Command::shell("sleep 1000")).await.unwrap();
    sandbox.kill(process).await.unwrap();
    let events = sandbox.attach(process, Offsets::default()).await.unwrap();
    let events: Vec<_> = events.collect().await;

    assert_eq!((late.reason, late.signal), (Reason::Timeout, Some(9)));
    let Some(Ok(Event::Ended(killed))) = events.last() else { panic!("{events:?}") };
    assert_eq!((killed.reason, killed.sandbox_survived), (Reason::Cancelled, true));
}

#[tokio::test]
async fn forty_commands_run_at_once() {
    let keeper = Keeper::new();
    let sandbox = keeper.sandbox().await;

    let runs = (0..40).map(|n| {
        let sandbox = Arc::clone(&sandbox);
        async move { run(&sandbox, &format!("cat; echo {n}"), Some(b"in ")).await.stdout }
    });
    let outputs = futures_util::future::join_all(runs).await;

    for (n, output) in outputs.into_iter().enumerate() {
        assert_eq!(String::from_utf8(output).unwrap(), format!("in {n}\n"));
    }
}

#[tokio::test]
async fn another_host_finds_what_the_first_one_started() {
    let keeper = Keeper::new();
    let first = keeper.sandbox().await;
    let command = Command::shell("echo begun; read line; echo $line").with_stdin();
    let process = first.start(command).await.unwrap();
    drop(first);

    let second = keeper.sandbox().await;
    second.write_stdin(process, Bytes::from_static(b"done\n")).await.unwrap();
    let events = second.attach(process, Offsets::default()).await.unwrap();
    let events: Vec<_> = events.map(|event| event.unwrap()).collect().await;

    let mut text = Vec::new();
    for event in &events {
        if let Event::Output { data, .. } = event {
            text.extend_from_slice(data);
        }
    }
    assert_eq!(text, b"begun\ndone\n");
    let processes = second.processes().await.unwrap();
    assert_eq!(processes.len(), 1);
    let Some(Event::Ended(outcome)) = events.last() else { panic!("{events:?}") };
    assert_eq!(processes[0].outcome.as_ref(), Some(outcome));
}

#[tokio::test]
async fn destroying_the_sandbox_ends_what_runs_as_lost() {
    let keeper = Keeper::new();
    let sandbox = keeper.sandbox().await;
    let process = sandbox.start(Command::shell("sleep 1000")).await.unwrap();
    let events = sandbox.attach(process, Offsets::default()).await.unwrap();

    sandbox.destroy().await.unwrap();

    let events: Vec<_> = events.collect().await;
    let Some(Ok(Event::Ended(outcome))) = events.last() else { panic!("{events:?}") };
    assert_eq!(outcome.reason, Reason::Lost);
}
