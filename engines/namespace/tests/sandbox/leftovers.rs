//! What is found again, and that nothing is left.

use std::{fs, path::Path, process, time::Duration};

use atoll_engine::{Command, Engine as _, Event, Offsets, Spec};
use atoll_namespace::{Config, NamespaceEngine};
use tokio::runtime::Runtime;

use crate::{
    OWNER, Test,
    stage::{Marks, Stage, make, named, text, wait_until},
};

pub(crate) const TESTS: [Test; 6] = [
    ("leftovers::nothing_is_left", nothing_is_left),
    ("leftovers::a_dropped_create_leaves_nothing", a_dropped_create_leaves_nothing),
    ("leftovers::what_a_dead_daemon_made_is_found", what_a_dead_daemon_made_is_found),
    ("leftovers::what_was_half_made_is_removed", what_was_half_made_is_removed),
    ("leftovers::no_other_process_is_killed", no_other_process_is_killed),
    ("leftovers::remains_are_listed_and_not_attached", remains_are_listed_and_not_attached),
];

fn nothing_is_left(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "some-sandbox", &Spec::default()).await;
        // Out of its session, its parent gone, deaf to signals.
        text(&sandbox, "(trap '' TERM HUP; setsid sleep 1000 &) > /dev/null 2>&1").await;
        let marks = Marks::of(stage, &sandbox).await;
        let before = marks.seen();
        assert!(before.iter().any(|mark| mark.starts_with("process")), "{before:?}");
        assert!(before.iter().any(|mark| mark.contains("cgroup")), "{before:?}");
        sandbox.destroy().await.unwrap();
        assert_eq!(marks.seen(), [""; 0]);
    });
}

fn a_dropped_create_leaves_nothing(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        for wait in [0, 1, 2, 4, 8] {
            let id = named(&format!("dropped-{wait}"));
            let spec = Spec::default();
            let create = stage.engine.create(&id, &spec);
            // It may also be there in time; then it is destroyed as any other.
            if let Ok(made) = tokio::time::timeout(Duration::from_millis(wait), create).await {
                made.unwrap().destroy().await.unwrap();
            }
        }
        let place = stage.state();
        let empty = move || fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_none());
        tokio::task::spawn_blocking(|| wait_until("a dropped sandbox stays", empty)).await.unwrap();
    });
}

/// Makes a sandbox in which something runs, and ends without a word.
pub(crate) fn be_an_owner(directory: &str) {
    Runtime::new().unwrap().block_on(async {
        let engine = NamespaceEngine::new(Config::new(directory));
        let sandbox = make(&engine, "orphan", &Spec::default()).await;
        let line = "echo one; until [ -e go ]; do sleep 0.01; done; echo two";
        sandbox.start(Command::shell(line)).await.unwrap();
    });
}

fn what_a_dead_daemon_made_is_found(stage: &Stage, runtime: &Runtime) {
    let program = std::env::current_exe().unwrap();
    let owner = process::Command::new(program).arg(OWNER).arg(stage.state()).status().unwrap();
    assert!(owner.success());
    runtime.block_on(async {
        assert_eq!(stage.engine.list().await.unwrap(), [named("orphan")]);
        let sandbox = stage.engine.attach(&named("orphan")).await.unwrap().unwrap();
        let marks = Marks::of(stage, &sandbox).await;
        let process = sandbox.processes().await.unwrap().first().unwrap().id;
        text(&sandbox, "touch go").await;
        let mut events = sandbox.attach(process, Offsets::default()).await.unwrap();
        let mut output = Vec::new();
        while let Some(event) = next(&mut events).await {
            match event {
                Event::Output { data, .. } => output.extend_from_slice(&data),
                Event::Ended(outcome) => assert!(outcome.succeeded(), "{outcome:?}"),
            }
        }
        assert_eq!(String::from_utf8(output).unwrap(), "one\ntwo\n");
        stage.engine.destroy(&named("orphan")).await.unwrap();
        assert_eq!(marks.seen_but_the_dead(), [""; 0]);
    });
}

async fn next(events: &mut atoll_engine::Events) -> Option<Event> {
    std::future::poll_fn(|context| events.as_mut().poll_next(context)).await.map(Result::unwrap)
}

fn what_was_half_made_is_removed(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        for (name, record) in [
            ("intent", Some(r#"{"owner":null,"limits":{},"init":null}"#)),
            ("garbage", Some("{")),
            ("nothing", None),
        ] {
            let sandbox = make(&stage.engine, name, &Spec::default()).await;
            let marks = Marks::of(stage, &sandbox).await;
            let path = stage.state().join(name).join("record.json");
            match record {
                Some(record) => fs::write(path, record).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
            let id = named(name);
            assert!(stage.engine.attach(&id).await.unwrap().is_none(), "{name}");
            stage.engine.destroy(&id).await.unwrap();
            sandbox.ended().await;
            assert_eq!(marks.seen(), [""; 0], "{name}");
        }
    });
}

fn no_other_process_is_killed(stage: &Stage, runtime: &Runtime) {
    let mut bystander = process::Command::new("sleep").arg("1000").spawn().unwrap();
    let survived = runtime.block_on(async {
        // As if its first process had ended and another had its number now.
        let sandbox = make(&stage.engine, "a", &Spec::default()).await;
        let path = stage.state().join("a/record.json");
        rewrite(&path, bystander.id());
        assert!(stage.engine.attach(sandbox.id()).await.unwrap().is_none());
        stage.engine.destroy(sandbox.id()).await.unwrap();
        sandbox.ended().await;
        bystander.try_wait().unwrap().is_none()
    });
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(survived);
}

/// Makes a record tell of a process long gone, whose number another has now.
fn rewrite(path: &Path, pid: u32) {
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    record["init"]["pid"] = pid.into();
    record["init"]["started"] = 1.into();
    fs::write(path, record.to_string()).unwrap();
}

fn remains_are_listed_and_not_attached(stage: &Stage, runtime: &Runtime) {
    fs::create_dir_all(stage.state().join("remains")).unwrap();
    fs::create_dir_all(stage.state().join("NOT-AN-ID")).unwrap();
    runtime.block_on(async {
        assert_eq!(stage.engine.list().await.unwrap(), [named("remains")]);
        assert!(stage.engine.attach(&named("remains")).await.unwrap().is_none());
        stage.engine.destroy(&named("remains")).await.unwrap();
        assert!(stage.engine.list().await.unwrap().is_empty());
        // And of one that never was, there is nothing to remove.
        stage.engine.destroy(&named("never")).await.unwrap();
    });
}
