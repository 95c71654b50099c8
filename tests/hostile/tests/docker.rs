//! Runs the hostile tier on the `docker` engine, with a daemon of its own.

use std::{process::ExitCode, sync::Arc};

use atoll_hostile::{
    harness,
    subject::{Docker, Exceptions},
};

fn main() -> ExitCode {
    let exceptions = Exceptions::read(include_str!("../exceptions/docker.txt"));
    harness::main(|| Ok(Arc::new(Docker::new()?)), &exceptions)
}
