//! Runs the hostile tier on the `namespace` engine as an ordinary user, whoever starts it.

use std::{process::ExitCode, sync::Arc};

use atoll_engine::conformance::ordinary;
use atoll_hostile::{
    harness,
    subject::{Exceptions, Ordinary},
};

fn main() -> ExitCode {
    if let Some(code) = ordinary::again() {
        return code;
    }
    let exceptions = Exceptions::read(include_str!("../exceptions/ordinary.txt"));
    harness::main(|| Ok(Arc::new(Ordinary::new()?)), &exceptions)
}
