//! Nothing stays of a sandbox, however it, or its daemon, ended.

use std::{fs, process};

use atoll_engine::{Command, Engine as _};
use atoll_namespace::{Config, NamespaceEngine};
use tokio::runtime::Runtime;

use crate::{
    Test,
    stage::{Stage, make, runs, text, wait_until},
};

pub(crate) const TESTS: [Test; 2] = [
    ("remains::nothing_is_left", nothing_is_left),
    ("remains::what_a_dead_daemon_made_is_found_and_ended", found_and_ended),
];

/// The argument with which this program makes a sandbox and dies.
pub(crate) const OWNER: &str = "--be-an-owner";

/// A word by which the processes of one test are found on the host.
fn word() -> String {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).unwrap();
    format!("1000.{:010}", u32::from_le_bytes(bytes))
}

fn nothing_is_left(stage: &Stage, runtime: &Runtime) {
    let word = word();
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "a").await;
        // Out of its session, its parent gone, deaf to signals.
        let line = format!("(trap '' TERM HUP; setsid sleep {word} &) > /dev/null 2>&1");
        text(&sandbox, &line).await;
        wait_until("it runs", || runs(&word));
        sandbox.destroy().await.unwrap();
        assert!(!runs(&word));
        assert_eq!(fs::read_dir(stage.state()).unwrap().count(), 0);
    });
}

/// Makes a sandbox in which something runs, and ends without a word.
pub(crate) fn be_an_owner(directory: &str) {
    Runtime::new().unwrap().block_on(async {
        let engine = NamespaceEngine::new(Config::new(directory));
        let sandbox = make(&engine, "orphan").await;
        let word = fs::read_to_string(format!("{directory}.word")).unwrap();
        sandbox.start(Command::new(["sleep", &word])).await.unwrap();
    });
}

fn found_and_ended(stage: &Stage, runtime: &Runtime) {
    let word = word();
    fs::write(format!("{}.word", stage.state().display()), &word).unwrap();
    let program = std::env::current_exe().unwrap();
    let owner = process::Command::new(program).arg(OWNER).arg(stage.state()).status().unwrap();
    assert!(owner.success());
    wait_until("it runs on", || runs(&word));
    runtime.block_on(async {
        let id = "orphan".parse().unwrap();
        let sandbox = stage.engine.attach(&id).await.unwrap().unwrap();
        assert_eq!(sandbox.processes().await.unwrap().len(), 1);
        assert_eq!(text(&sandbox, "echo alive").await, "alive\n");
        stage.engine.destroy(&id).await.unwrap();
        assert!(!runs(&word));
    });
}
