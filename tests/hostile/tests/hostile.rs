//! Runs the hostile tier on the `namespace` engine, as root. `README.md` beside it says how to
//! read a run.

use std::{process::ExitCode, sync::Arc};

use atoll_hostile::{
    harness,
    subject::{Exceptions, Namespace},
};

fn main() -> ExitCode {
    let exceptions = Exceptions::read(include_str!("../exceptions/namespace.txt"));
    harness::main(|| Ok(Arc::new(Namespace::new()?)), &exceptions)
}
