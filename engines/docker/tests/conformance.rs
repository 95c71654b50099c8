//! The contract, case by case, on a daemon of the test's own.

use std::{fs, path::Path, process::ExitCode, sync::Arc};

use atoll_docker::{Config, DockerEngine};
use atoll_engine::{
    Image, Root,
    conformance::{self, Subject},
};
use atoll_test_dockerd::{Dockerd, IMAGE};

fn main() -> ExitCode {
    // Listing needs no daemon, and without one the probe says what is missing.
    let listing = std::env::args().any(|argument| argument == "--list");
    let daemon = if listing { None } else { Some(Dockerd::start()) };
    let daemon = match daemon {
        Some(Ok(daemon)) => Some(Arc::new(daemon)),
        Some(Err(missing)) => {
            note(&missing.to_string());
            None
        }
        None => None,
    };
    let host = daemon.as_ref().map_or("/nowhere/docker.sock".to_owned(), |one| one.host());
    let make = move |directory: &Path| {
        Arc::new(DockerEngine::new(Config { host: host.clone(), ..Config::new(directory) })) as _
    };
    let watched = daemon.clone();
    let subject = Subject::new(make, include_str!("unsupported.txt"))
        .root(Root::Image(Image::Reference(IMAGE.to_owned())))
        .census(move |state| nothing_is_left(state, watched.as_deref()));
    conformance::run(&subject)
}

fn note(text: &str) {
    use std::io::Write as _;

    let _ = writeln!(std::io::stderr(), "docker: {text}");
}

/// No directory of a sandbox, no container and no volume.
fn nothing_is_left(state: &Path, daemon: Option<&Dockerd>) -> Result<(), String> {
    let entries = fs::read_dir(state).map_err(|error| error.to_string())?.flatten();
    let mut left: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    left.extend(daemon.into_iter().flat_map(Dockerd::containers));
    left.extend(daemon.into_iter().flat_map(Dockerd::volumes));
    if left.is_empty() { Ok(()) } else { Err(format!("{left:?} is left")) }
}
