//! A daemon that is not there, goes away, or is used by others too.

use std::{sync::Arc, time::Duration};

use atoll_docker::{Config, DockerEngine};
use atoll_engine::{Command, Engine as _, ErrorKind};
use atoll_test_dockerd::{Dockerd, Missing, Options};
use tokio::{runtime::Runtime, time::timeout};

use crate::{
    Test,
    stage::{Made, Stage, fresh, spec},
};

pub(crate) const TESTS: [Test; 4] = [
    ("daemon::one_that_is_not_there_is_told", one_that_is_not_there_is_told),
    ("daemon::a_container_others_removed_is_lost", a_container_others_removed_is_lost),
    ("daemon::its_death_ends_nothing_unnoticed", its_death_ends_nothing_unnoticed),
    ("daemon::with_live_restore_sandboxes_go_on", with_live_restore_sandboxes_go_on),
];

const SOON: Duration = Duration::from_mins(1);

fn one_that_is_not_there_is_told(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    for host in ["/nowhere/docker.sock", "tcp://127.0.0.1:1", "ssh://host"] {
        let engine = DockerEngine::new(Config { host: host.to_owned(), ..stage.config() });
        let error = runtime.block_on(engine.probe()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{host}");
        assert!(error.advice().is_some() && !error.message().contains("nowhere"), "{error:?}");
        let error = runtime.block_on(engine.create(&fresh(), &spec())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{host}");
    }
    Ok(())
}

fn a_container_others_removed_is_lost(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let engine = stage.engine();
    let made = Made::new(&engine, &spec(), runtime);
    let name = stage.inspect(made.sandbox.id())["Name"].as_str().unwrap().to_owned();

    stage.daemon.ask("DELETE", &format!("/containers{name}?force=1"), "");

    runtime.block_on(async {
        timeout(SOON, made.sandbox.ended()).await.unwrap();
        let error = made.sandbox.start(Command::new(["true"])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost);
        assert!(engine.attach(made.sandbox.id()).await.unwrap().is_none());
        engine.destroy(made.sandbox.id()).await.unwrap();
        assert!(engine.list().await.unwrap().is_empty());
    });
    Ok(())
}

/// A stage with a daemon of its own.
fn apart(live_restore: bool) -> Result<(Stage, String), Missing> {
    let daemon = Dockerd::with(Options { live_restore, ..Options::default() })?;
    let host = daemon.host();
    Ok((Stage::new(Arc::new(daemon)), host))
}

fn daemon(stage: &mut Stage) -> &mut Dockerd {
    Arc::get_mut(&mut stage.daemon).expect("nobody else has it")
}

fn its_death_ends_nothing_unnoticed(_: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let (mut stage, _) = apart(false)?;
    let engine = stage.engine();
    let sandbox = runtime.block_on(engine.create(&fresh(), &spec())).unwrap();

    daemon(&mut stage).kill();

    let run = || atoll_engine::exec(&sandbox, Command::new(["echo", "alive"]), None);
    assert_eq!(runtime.block_on(run()).unwrap().stdout, b"alive\n");
    for error in [
        runtime.block_on(engine.list()).map(drop).unwrap_err(),
        runtime.block_on(engine.destroy(sandbox.id())).unwrap_err(),
        runtime.block_on(engine.create(&fresh(), &spec())).map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    }

    // It ends what it finds running: without live restore it has nothing to reach it by.
    daemon(&mut stage).restart();
    runtime.block_on(async {
        timeout(SOON, sandbox.ended()).await.unwrap();
        let error = sandbox.processes().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost);
        for id in engine.list().await.unwrap() {
            engine.destroy(&id).await.unwrap();
        }
        assert!(engine.list().await.unwrap().is_empty());
    });
    assert_eq!(stage.daemon.containers(), Vec::<String>::new());
    Ok(())
}

fn with_live_restore_sandboxes_go_on(_: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let (mut stage, _) = apart(true)?;
    let engine = stage.engine();
    let sandbox = runtime.block_on(engine.create(&fresh(), &spec())).unwrap();

    daemon(&mut stage).kill();
    daemon(&mut stage).restart();

    let run = || atoll_engine::exec(&sandbox, Command::new(["echo", "alive"]), None);
    assert_eq!(runtime.block_on(run()).unwrap().stdout, b"alive\n");
    let other = stage.engine();
    let found = runtime.block_on(other.attach(sandbox.id())).unwrap();
    assert!(found.is_some());
    runtime.block_on(other.destroy(sandbox.id())).unwrap();
    runtime.block_on(async { timeout(SOON, sandbox.ended()).await.unwrap() });
    assert_eq!(stage.daemon.containers(), Vec::<String>::new());
    Ok(())
}
