//! The contract, case by case, as an ordinary user with one id.

use std::{fs, path::Path, process::ExitCode, sync::Arc};

use atoll_engine::conformance::{self, Subject, ordinary};
use atoll_namespace::{Config, NamespaceEngine};

fn main() -> ExitCode {
    if let Some(code) = ordinary::again() {
        return code;
    }
    let subject = Subject::new(
        |directory| Arc::new(NamespaceEngine::new(Config::new(directory))),
        // What root is refused too, and more.
        concat!(include_str!("unsupported.txt"), include_str!("unsupported_ordinary.txt")),
    );
    conformance::run(&subject.census(nothing_is_left))
}

/// No file of a sandbox, and no mount.
fn nothing_is_left(state: &Path) -> Result<(), String> {
    let problem = |error: std::io::Error| error.to_string();
    if let Some(entry) = fs::read_dir(state).map_err(problem)?.next() {
        return Err(format!("{entry:?} is left"));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(problem)?;
    match mounts.lines().find(|line| line.contains(&*state.to_string_lossy())) {
        Some(mount) => Err(format!("{mount} is left")),
        None => Ok(()),
    }
}
