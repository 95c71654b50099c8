//! The contract, case by case, as an ordinary user to whom a control group was given: what root is
//! refused, and no more.
//!
//! Where control groups are version 1 the virtual machine of `tests/cgroup2.rs` runs this.

use std::{process::ExitCode, sync::Arc};

use atoll_engine::conformance::{self, Subject, ordinary};
use atoll_namespace::{Config, NamespaceEngine};

fn main() -> ExitCode {
    if let Some(code) = ordinary::again_with_control_group() {
        return code;
    }
    conformance::run(&Subject::new(
        |directory| Arc::new(NamespaceEngine::new(Config::new(directory))),
        include_str!("unsupported.txt"),
    ))
}
