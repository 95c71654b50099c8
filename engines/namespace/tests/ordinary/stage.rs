//! An engine with a directory of its own, and sandboxes that are gone when the test is.

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use atoll_engine::{Command, Engine as _, Output, Sandbox, Spec, exec};
use atoll_namespace::{Config, NamespaceEngine, Weakness};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) struct Stage {
    pub(crate) directory: TempDir,
    pub(crate) engine: NamespaceEngine,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let engine = NamespaceEngine::new(Config::new(directory.path().join("state")));
        Self { directory, engine }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// The same place, with walls left out.
    pub(crate) fn weak(&self, weaknesses: &[Weakness]) -> NamespaceEngine {
        let mut config = Config::new(self.state());
        config.weaknesses = weaknesses.to_vec();
        NamespaceEngine::new(config)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let runtime = Runtime::new().unwrap();
        runtime.block_on(async {
            for id in self.engine.list().await.unwrap() {
                self.engine.destroy(&id).await.unwrap();
            }
        });
    }
}

pub(crate) async fn make(engine: &NamespaceEngine, name: &str) -> Arc<dyn Sandbox> {
    engine.create(&name.parse().unwrap(), &Spec::default()).await.unwrap()
}

pub(crate) async fn run(sandbox: &Arc<dyn Sandbox>, line: &str) -> Output {
    exec(sandbox, Command::shell(line).timeout(Duration::from_secs(30)), None).await.unwrap()
}

/// What a line writes, which must succeed.
pub(crate) async fn text(sandbox: &Arc<dyn Sandbox>, line: &str) -> String {
    let output = run(sandbox, line).await;
    assert!(output.outcome.succeeded(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a process of the host that still runs has this word among its arguments.
pub(crate) fn runs(word: &str) -> bool {
    let has = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().any(has)
}

pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
