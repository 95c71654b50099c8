//! A service on the real local engine, in a directory of its own, with nothing left behind.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use atoll_engine::Engine as _;
use atoll_local::{Config, LocalEngine};
use atoll_service::{Engines, Service, Settings, Store};
use atoll_types::{
    execution::{CommandLine, ExecuteRequest},
    id::{SandboxId, SessionId},
    session::{CreateSession, End, Session, State},
};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct World {
    place: tempfile::TempDir,
    service: Option<Service>,
    pub(crate) store: Store,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::at(tempfile::tempdir().unwrap(), settings).await
    }

    pub(crate) async fn at(place: tempfile::TempDir, settings: Settings) -> Self {
        let (service, store) = open(place.path(), settings).await;
        Self { place, service: Some(service), store }
    }

    pub(crate) fn service(&self) -> &Service {
        self.service.as_ref().unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn engine(&self) -> LocalEngine {
        engine(self.place.path())
    }

    /// Drops the service without a word, as a crash would, and opens another in its place.
    pub(crate) async fn crash(&mut self) {
        drop(self.service.take());
        self.reopen().await;
    }

    pub(crate) async fn restart(&mut self) {
        self.service.take().unwrap().shutdown().await;
        self.reopen().await;
    }

    async fn reopen(&mut self) {
        let (service, store) = open(self.place.path(), settings()).await;
        (self.service, self.store) = (Some(service), store);
    }

    pub(crate) async fn session(&self) -> Session {
        self.service().create_session(trusted()).await.unwrap()
    }

    pub(crate) async fn sandboxes(&self) -> Vec<SandboxId> {
        self.engine().list().await.unwrap()
    }

    /// Waits until the session is in that state.
    pub(crate) async fn until(&self, id: &SessionId, state: State) -> Session {
        let began = Instant::now();
        loop {
            let session = self.service().session(id).await.unwrap();
            if session.state == state {
                return session;
            }
            assert!(began.elapsed() < PATIENCE, "still {:?}, not {state:?}", session.state);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn until_ended(&self, id: &SessionId) -> Option<End> {
        self.until(id, State::Gone).await.end
    }

    /// Waits until a file is there in the session.
    pub(crate) async fn until_file(&self, id: &SessionId, path: &str) {
        let began = Instant::now();
        while self.service().stat_file(id, path).await.is_err() {
            assert!(began.elapsed() < PATIENCE, "no file {path}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the engine has no sandbox.
    pub(crate) async fn until_empty(&self) {
        let began = Instant::now();
        while !self.sandboxes().await.is_empty() {
            assert!(began.elapsed() < PATIENCE, "a sandbox is left");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for World {
    /// Also when a test failed, no sandbox stays.
    fn drop(&mut self) {
        drop(self.service.take());
        let engine = self.engine();
        let cleared = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                for id in engine.list().await.unwrap_or_default() {
                    engine.destroy(&id).await.unwrap();
                }
            });
        })
        .join();
        if !std::thread::panicking() {
            cleared.unwrap();
        }
    }
}

fn engine(place: &Path) -> LocalEngine {
    LocalEngine::new(Config::new(place.join("sandboxes")))
}

pub(crate) async fn open(place: &Path, settings: Settings) -> (Service, Store) {
    let store = Store::open(&place.join("atoll.db")).await.unwrap();
    let engines = Engines::new().with(Arc::new(engine(place)));
    (Service::open(store.clone(), engines, settings).await.unwrap(), store)
}

/// What the tests' operator chose: trusted code may run, on the engine there is.
pub(crate) fn settings() -> Settings {
    Settings {
        allow_trusted: true,
        default_engine: "local".to_owned(),
        reap_every: Duration::from_millis(50),
        ..Settings::default()
    }
}

pub(crate) fn trusted() -> CreateSession {
    CreateSession { trusted: true, ..CreateSession::default() }
}

pub(crate) fn shell(line: &str) -> ExecuteRequest {
    ExecuteRequest { command: Some(CommandLine::Shell(line.to_owned())), ..Default::default() }
}

pub(crate) fn code(language: &str, code: &str) -> ExecuteRequest {
    ExecuteRequest {
        code: Some(code.to_owned()),
        language: Some(language.to_owned()),
        ..Default::default()
    }
}

pub(crate) fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// A directory with one environment, `tests`, of languages that every host has.
pub(crate) fn environments(place: &Path) -> PathBuf {
    let directory = place.join("environments");
    std::fs::create_dir(&directory).unwrap();
    let text = r#"
description: For tests.
roots: { local: host }
env: { SAID: by the environment, KEPT: "yes" }
language: absent
languages:
  absent: { source: main, run: [no-such-program-anywhere, "{file}"] }
  future:
    source: main
    run: [/bin/sh, "{file}"]
    requires: { command: [/bin/echo, v1.9], version: "2.0" }
  script:
    source: main.script
    extensions: [script]
    compile: [/bin/sh, -c, 'grep -q valid "$0" && install -m 755 "$0" "$1"', "{file}", "{output}"]
    run: ["{output}"]
"#;
    std::fs::write(directory.join("tests.yaml"), text).unwrap();
    directory
}
