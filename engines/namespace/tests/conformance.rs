//! The contract, case by case.

use std::{process::ExitCode, sync::Arc};

use atoll_engine::conformance::{self, Subject};
use atoll_namespace::{Config, NamespaceEngine};

fn main() -> ExitCode {
    conformance::run(&Subject::new(
        |directory| Arc::new(NamespaceEngine::new(Config::new(directory))),
        include_str!("unsupported.txt"),
    ))
}
