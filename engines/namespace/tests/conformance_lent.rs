//! The contract, case by case, as an ordinary user who has ids besides its own.

#![expect(clippy::unwrap_used, reason = "a test program")]

use std::{
    collections::BTreeSet, fs, os::unix::fs::MetadataExt as _, process::ExitCode, sync::Arc,
};

use atoll_engine::{
    Command, Engine as _, Mount, Sandbox, Spec,
    conformance::{self, Subject, ordinary},
    exec,
};
use atoll_namespace::{Config, NamespaceEngine};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    if let Some(code) = ordinary::again_with_allowance() {
        return code;
    }
    if Runtime::new().unwrap().block_on(engine(&std::env::temp_dir()).probe()).is_ok() {
        each_sandbox_has_its_own();
    }
    let subject = Subject::new(
        |directory| Arc::new(engine(directory)),
        concat!(include_str!("unsupported.txt"), include_str!("unsupported_ordinary.txt")),
    );
    conformance::run(&subject)
}

fn engine(directory: &std::path::Path) -> NamespaceEngine {
    let mut config = Config::new(directory);
    config.lent_ids = Some(directory.with_extension("ids"));
    NamespaceEngine::new(config)
}

/// Were they not used, every case would pass all the same.
fn each_sandbox_has_its_own() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(&place.path().join("state"));
    let own = fs::metadata(place.path()).unwrap().uid();
    Runtime::new().unwrap().block_on(async {
        let mut outside = BTreeSet::from([own]);
        for name in ["a", "b"] {
            let sandbox = engine.create(&name.parse().unwrap(), &Spec::default()).await.unwrap();
            let map = text(&sandbox, "cat /proc/self/uid_map").await;
            for (line, inside) in map.lines().zip([0, 1000]) {
                let numbers: Vec<u32> =
                    line.split_whitespace().map(|word| word.parse().unwrap()).collect();
                assert_eq!((numbers[0], numbers[2]), (inside, 1), "{map}");
                assert!(outside.insert(numbers[1]), "{map}");
            }
            assert_eq!(
                text(&sandbox, "id -u; id -G; stat -c %u /etc /tmp").await,
                "1000\n1000\n0\n0\n"
            );
            assert_eq!(text(&sandbox, "kill -9 1 2> /dev/null || echo no").await, "no\n");
            sandbox.destroy().await.unwrap();
        }
        assert_eq!(outside.len(), 5);

        // What is this user's is shown as the guest's.
        let mount = Mount { host: place.path().into(), guest: "/data".into(), writable: true };
        let spec = Spec { mounts: vec![mount], ..Spec::default() };
        let sandbox = engine.create(&"c".parse().unwrap(), &spec).await.unwrap();
        assert_eq!(text(&sandbox, "touch /data/made; stat -c %u /data/made").await, "1000\n");
        assert_eq!(text(&sandbox, "kill -9 1 2> /dev/null || echo no").await, "no\n");
        sandbox.destroy().await.unwrap();
    });
    assert_eq!(fs::metadata(place.path().join("made")).unwrap().uid(), own);
}

async fn text(sandbox: &Arc<dyn Sandbox>, line: &str) -> String {
    let output = exec(sandbox, Command::shell(line), None).await.unwrap();
    String::from_utf8(output.stdout).unwrap()
}
