//! What is left when an agent, or the daemon that made it, came to a sudden end.

#![expect(clippy::unwrap_used, reason = "a test's own steps work or it fails")]

use std::{path::Path, sync::Arc, time::Duration};

use atoll_engine::{Command, Engine, Network, Sandbox, SandboxId, Spec, exec};
use atoll_local::{Config, LocalEngine};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// An engine with one sandbox in which a process has left its session and its parent.
struct Stage {
    engine: LocalEngine,
    id: SandboxId,
    sandbox: Arc<dyn Sandbox>,
    /// The process that left.
    stray: Pid,
    directory: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let engine = LocalEngine::new(Config::new(directory.path()));
        let id: SandboxId = "one".parse().unwrap();
        let spec = Spec { trusted: true, network: Network::Host, ..Spec::default() };
        let sandbox = engine.create(&id, &spec).await.unwrap();
        let line = "(setsid sh -c 'echo $$ > pid; exec sleep 300' >/dev/null 2>&1 &)
            until [ -s pid ]; do sleep 0.02; done; cat pid";
        let output = exec(&sandbox, Command::shell(line), None).await.unwrap();
        let pid = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        Self { engine, id, sandbox, stray: Pid::from_raw(pid).unwrap(), directory }
    }

    fn place(&self) -> std::path::PathBuf {
        self.directory.path().join(self.id.as_str())
    }

    fn agent(&self) -> Pid {
        let text = std::fs::read(self.place().join("record.json")).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let pid = record["agent"]["pid"].as_i64().unwrap();
        Pid::from_raw(pid.try_into().unwrap()).unwrap()
    }

    async fn destroyed(&self) {
        self.engine.destroy(&self.id).await.unwrap();

        until_gone(self.stray).await;
        assert!(!self.place().exists());
        assert_eq!(self.engine.list().await.unwrap(), []);
    }
}

/// A test that fails leaves nothing either.
impl Drop for Stage {
    fn drop(&mut self) {
        let _ = kill_process(self.stray, Signal::KILL);
    }
}

/// Ended, if perhaps not yet noted by its parent.
async fn until_gone(process: Pid) {
    let ended = || {
        let status = format!("/proc/{}/stat", process.as_raw_nonzero());
        let state = std::fs::read(Path::new(&status)).unwrap_or_default();
        test_kill_process(process).is_err() || state.windows(4).any(|part| part == b") Z ")
    };
    let waiting = async {
        while !ended() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_agent_a_sandbox_is_a_remainder() {
    let stage = Stage::new().await;

    kill_process(stage.agent(), Signal::KILL).unwrap();
    stage.sandbox.ended().await;

    assert!(stage.engine.attach(&stage.id).await.unwrap().is_none());
    assert_eq!(stage.engine.list().await.unwrap(), std::slice::from_ref(&stage.id));
    stage.destroyed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_record_everything_is_still_found() {
    let stage = Stage::new().await;

    std::fs::remove_file(stage.place().join("record.json")).unwrap();

    assert!(stage.engine.attach(&stage.id).await.unwrap().is_none());
    stage.destroyed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_tree_is_destroyed() {
    let stage = Stage::new().await;

    kill_process(stage.stray, Signal::STOP).unwrap();
    kill_process(stage.agent(), Signal::STOP).unwrap();

    stage.destroyed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_takes_nothing_of_the_daemon_along() {
    let stage = Stage::new().await;
    let agent = format!("/proc/{}", stage.agent().as_raw_nonzero());

    let variables = std::fs::read_to_string(format!("{agent}/environ")).unwrap();
    let names: Vec<_> =
        variables.split_terminator('\0').filter_map(|one| one.split('=').next()).collect();

    assert_eq!(names, ["ATOLL_SANDBOX"]);
    stage.destroyed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_with_any_name_is_ended() {
    let stage = Stage::new().await;
    // The kernel keeps 15 bytes of the name: the last of them is half a letter.
    let line = "cp \"$(command -v sleep)\" ./\u{43f}\u{440}\u{438}\u{43b}\u{43e}\u{436}\u{435}\u{43d}\u{438}\u{435}
        (setsid ./\u{43f}* 300 >/dev/null 2>&1 & echo $!)";
    let output = exec(&stage.sandbox, Command::shell(line), None).await.unwrap();
    let pid: i32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let named = Named(Pid::from_raw(pid).unwrap());
    let started = async {
        while String::from_utf8(std::fs::read(format!("/proc/{pid}/stat")).unwrap()).is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), started).await.expect("it has its name");

    stage.destroyed().await;

    until_gone(named.0).await;
}

/// Ended with the test.
struct Named(Pid);

impl Drop for Named {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}
