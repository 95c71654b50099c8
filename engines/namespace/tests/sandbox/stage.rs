//! An engine with a directory of its own, and a sandbox that is gone when the test is.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use atoll_engine::{Command, Engine as _, Output, Sandbox, SandboxId, Spec, exec};
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
        let engine = NamespaceEngine::new(Config::new(state(directory.path())));
        Self { directory, engine }
    }

    /// The same place, with walls left out.
    pub(crate) fn weak(&self, weaknesses: &[Weakness]) -> NamespaceEngine {
        let mut config = Config::new(state(self.directory.path()));
        config.weaknesses = weaknesses.to_vec();
        NamespaceEngine::new(config)
    }

    pub(crate) fn state(&self) -> PathBuf {
        state(self.directory.path())
    }
}

/// What of a living sandbox can be seen on this host.
pub(crate) struct Marks {
    directory: PathBuf,
    ids: u32,
    groups: Vec<PathBuf>,
}

impl Marks {
    pub(crate) async fn of(stage: &Stage, sandbox: &Arc<dyn Sandbox>) -> Self {
        let (directory, ids) = (stage.state().join(sandbox.id().as_str()), ids(sandbox).await);
        let mut groups = Vec::new();
        for process in processes(ids) {
            let lines = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
            for line in lines.lines().filter(|line| line.contains("/atoll/")) {
                let [_, controllers, path] = line.split(':').collect::<Vec<_>>()[..] else {
                    panic!("{line}")
                };
                let path = Path::new("/sys/fs/cgroup").join(controllers).join(&path[1..]);
                assert!(path.exists(), "{}", path.display());
                groups.push(path);
            }
        }
        Self { directory, ids, groups }
    }

    /// Which of them can be seen now.
    pub(crate) fn seen(&self) -> Vec<String> {
        let paths = self.groups.iter().chain([&self.directory]).filter(|path| path.exists());
        let mut seen: Vec<_> = paths.map(|path| path.display().to_string()).collect();
        let named = self.directory.to_string_lossy();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        seen.extend(mounts.lines().filter(|line| line.contains(&*named)).map(str::to_owned));
        for process in processes(self.ids) {
            let dead =
                fs::read_to_string(process.join("stat")).is_ok_and(|stat| stat.contains(") Z "));
            let what = if dead { "remains of process" } else { "process" };
            seen.push(format!("{what} {}", process.display()));
        }
        seen
    }

    /// Without the dead that wait for a parent which is not this test.
    pub(crate) fn seen_but_the_dead(&self) -> Vec<String> {
        self.seen().into_iter().filter(|mark| !mark.starts_with("remains")).collect()
    }
}

/// Every process, dead ones too, whose user is one of a sandbox's.
fn processes(ids: u32) -> Vec<PathBuf> {
    let ours = |path: &PathBuf| {
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let uid = uid.and_then(|line| line.split_whitespace().next()?.parse::<u32>().ok());
        uid.is_some_and(|uid| (ids..ids + 65536).contains(&uid))
    };
    fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(ours).collect()
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

fn state(directory: &Path) -> PathBuf {
    directory.join("state")
}

pub(crate) fn named(name: &str) -> SandboxId {
    name.parse().unwrap()
}

pub(crate) async fn make(engine: &NamespaceEngine, name: &str, spec: &Spec) -> Arc<dyn Sandbox> {
    engine.create(&named(name), spec).await.unwrap()
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

/// The first of a sandbox's ids on the host.
pub(crate) async fn ids(sandbox: &Arc<dyn Sandbox>) -> u32 {
    let map = text(sandbox, "cat /proc/self/uid_map").await;
    let numbers: Vec<u32> = map.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [0, first, 65536] = numbers[..] else { panic!("{map}") };
    first
}

pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
