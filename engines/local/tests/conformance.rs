//! The contract, on this host.

use std::{path::Path, process::ExitCode, sync::Arc};

use atoll_engine::conformance::{self, Subject};
use atoll_local::{Config, LocalEngine};

fn main() -> ExitCode {
    let subject = Subject::new(
        |directory| Arc::new(LocalEngine::new(Config::new(directory))),
        include_str!("unsupported.txt"),
    );
    conformance::run(&subject.census(nothing_is_left))
}

/// No file, and no process that carries the mark of one of these sandboxes.
fn nothing_is_left(state: &Path) -> Result<(), String> {
    let files = std::fs::read_dir(state).map_err(|error| error.to_string())?.count();
    if files > 0 {
        return Err(format!("{files} entries are left in the state directory"));
    }
    let mark = format!("ATOLL_SANDBOX={}", state.display());
    let marked = std::fs::read_dir("/proc")
        .map_err(|error| error.to_string())?
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("environ")).ok())
        .filter(|variables| variables.windows(mark.len()).any(|part| part == mark.as_bytes()))
        .count();
    if marked > 0 { Err(format!("{marked} processes are left")) } else { Ok(()) }
}
