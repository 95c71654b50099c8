//! An ordinary user with a fresh home.

use std::{ffi::OsString, fs, os::unix::fs::MetadataExt as _, path::Path, process::Stdio};

use atoll_engine::conformance::ordinary::Home;
use serde_json::Value;

use crate::{
    Case,
    atoll::{Ended, finish},
};

pub(crate) const CASES: &[Case] = &[
    ("ordinary::a_run_needs_no_root_and_leaves_nothing", a_run_needs_no_root_and_leaves_nothing),
    ("ordinary::what_cannot_be_held_is_told", what_cannot_be_held_is_told),
    ("ordinary::its_own_directory_can_be_mounted", its_own_directory_can_be_mounted),
];

/// A user, whose server and processes are gone when this is.
struct User(Home);

impl User {
    fn run(&self, arguments: &[&str]) -> Ended {
        let program = Path::new(env!("CARGO_BIN_EXE_atoll"));
        let mut command = self.0.command(program, arguments.iter().map(OsString::from)).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(command.spawn().unwrap())
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.text()
    }

    /// Processes that run as this user, with their names; not the dead that wait for a parent.
    fn processes(&self) -> Vec<String> {
        let own = |entry: fs::DirEntry| {
            let owner = fs::metadata(entry.path()).ok()?.uid();
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
            let uid = uid.split_whitespace().next()?.parse::<u32>().ok()?;
            let dead = status.lines().any(|line| line.starts_with("State:\tZ"));
            let ours = !dead && (owner == self.0.user() || uid == self.0.user());
            ours.then(|| status.lines().next().unwrap_or_default().to_owned())
        };
        fs::read_dir("/proc").unwrap().flatten().filter_map(own).collect()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.run(&["daemon", "stop", "--quiet"]);
    }
}

fn user() -> User {
    User(Home::new().unwrap())
}

fn a_run_needs_no_root_and_leaves_nothing() {
    let user = user();

    assert_eq!(user.ok(&["run", "-c", "print(6 * 7)"]), "42\n");
    assert_eq!(user.run(&["run", "-c", "raise SystemExit(3)"]).code, 3);
    let session = user.ok(&["session", "create", "--quiet"]);
    let session = session.trim();
    user.ok(&["exec", session, "--", "sh", "-c", "echo kept > file; setsid sleep 1000 & exit 0"]);
    assert_eq!(user.ok(&["exec", session, "--", "cat", "file"]), "kept\n");
    assert!(user.processes().iter().any(|name| name.ends_with("sleep")), "{:?}", user.processes());
    user.ok(&["session", "rm", session]);
    assert!(!user.processes().iter().any(|name| name.ends_with("sleep")), "{:?}", user.processes());

    user.ok(&["daemon", "stop"]);
    assert_eq!(user.processes(), [""; 0]);
    let state = user.0.path().join(".local/share/atoll/engines/namespace");
    let left = fs::read_dir(state).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}

fn what_cannot_be_held_is_told() {
    let user = user();

    let engines: Value = serde_json::from_str(&user.ok(&["engines", "--json"])).unwrap();
    let namespace = engines.as_array().unwrap().iter().find(|one| one["name"] == "namespace");
    let grades = namespace.unwrap()["grades"].as_array().unwrap().clone();
    let memory = grades.iter().find(|grade| grade["limit"] == "memory").unwrap();
    if memory["strength"] == "full" {
        // This user has a control group of its own: there is nothing to tell.
        return;
    }
    let refused = user.run(&["run", "--memory", "64m", "-c", "1"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("Delegate=yes"), "{refused:?}");

    // A default that cannot hold is left out, and said to be.
    let session = user.ok(&["session", "create", "--quiet"]);
    let shown = user.ok(&["session", "show", "--json", session.trim()]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["session"]["limits"]["memory"], Value::Null);
    assert_eq!(shown["session"]["limits"]["pids"], 128);
    let told = shown["session"]["grades"].as_array().unwrap();
    let strength = |limit: &str| {
        told.iter().find(|grade| grade["limit"] == limit).unwrap()["strength"].clone()
    };
    assert_eq!((strength("memory"), strength("pids")), ("refused".into(), "weak".into()));
}

fn its_own_directory_can_be_mounted() {
    let user = user();

    let line = "open('/data/made', 'w').write('by a guest')";
    let mount = format!("{}:/data:rw", user.0.path().display());
    user.ok(&["run", "-v", &mount, "-c", line]);

    let made = user.0.path().join("made");
    assert_eq!(fs::read_to_string(&made).unwrap(), "by a guest");
    assert_eq!(fs::metadata(&made).unwrap().uid(), user.0.user());
}
