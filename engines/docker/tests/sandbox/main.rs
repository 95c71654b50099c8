//! What only this engine promises, beyond the contract, on a daemon of the test's own.
//!
//! Where there can be no daemon the tests are ignored, or fail if `ATOLL_REQUIRE_ENGINES` is set.

#![expect(clippy::unwrap_used, reason = "a test program")]
#![expect(clippy::unnecessary_wraps, reason = "all tests are called alike")]

mod daemon;
mod image;
mod posture;
mod pull;
mod runtime;
mod stage;

use std::{process::ExitCode, sync::Arc};

use atoll_test_dockerd::{Dockerd, Missing};
use libtest_mimic::{Arguments, Trial};
use stage::Stage;
use tokio::runtime::Runtime;

/// A test's name, and itself. It ends early where something it needs besides is missing.
type Test = (&'static str, fn(&Stage, &Runtime) -> Result<(), Missing>);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let daemon = if arguments.list { Err(Missing(String::new())) } else { Dockerd::start() };
    let problem = daemon.as_ref().err().cloned();
    let daemon = daemon.ok().map(Arc::new);
    let tests: Vec<Test> = [
        &posture::TESTS[..],
        &image::TESTS[..],
        &pull::TESTS[..],
        &daemon::TESTS[..],
        &runtime::TESTS[..],
    ]
    .concat();
    let trial = |(name, test): Test| {
        let (problem, daemon) = (problem.clone(), daemon.clone());
        let ignored = problem.is_some() && !engines_are_required();
        Trial::test(name, move || {
            let Some(daemon) = daemon else {
                return Err(problem.map_or(String::new(), |missing| missing.0).into());
            };
            // Dropped after the runtime, when nothing is being made any more.
            let stage = Stage::new(daemon);
            let runtime = Runtime::new()?;
            match test(&stage, &runtime) {
                Err(missing) if engines_are_required() => Err(missing.0.into()),
                Err(missing) => {
                    note(&format!("{name} is left out: {missing}"));
                    Ok(())
                }
                Ok(()) => Ok(()),
            }
        })
        .with_ignored_flag(ignored)
    };
    let trials = tests.into_iter().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn note(text: &str) {
    use std::io::Write as _;

    let _ = writeln!(std::io::stderr(), "{text}");
}

#[expect(clippy::disallowed_methods, reason = "the test program's only setting")]
fn engines_are_required() -> bool {
    std::env::var_os("ATOLL_REQUIRE_ENGINES").is_some_and(|value| !value.is_empty())
}
