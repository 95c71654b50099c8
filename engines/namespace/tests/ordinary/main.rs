//! What holds where agent and guests have one user, the daemon's.
//!
//! Root becomes an ordinary user first. Where an ordinary user can make no sandboxes the tests are
//! ignored, or fail if `ATOLL_REQUIRE_ENGINES` is set.

#![expect(clippy::unwrap_used, reason = "a test program")]

mod attacks;
mod posture;
mod remains;
mod stage;

use std::process::ExitCode;

use atoll_engine::{Engine as _, conformance::ordinary};
use libtest_mimic::{Arguments, Trial};
use stage::Stage;
use tokio::runtime::Runtime;

/// A test's name, and itself.
type Test = (&'static str, fn(&Stage, &Runtime));

fn main() -> ExitCode {
    if let Some(code) = ordinary::again() {
        return code;
    }
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, role, directory] = &arguments[..]
        && role == remains::OWNER
    {
        remains::be_an_owner(directory);
        return ExitCode::SUCCESS;
    }
    let tests: Vec<Test> = [&attacks::TESTS[..], &posture::TESTS[..], &remains::TESTS[..]].concat();
    let probed = Runtime::new().unwrap().block_on(Stage::new().engine.probe());
    let problem = probed.err().map(|error| error.to_string());
    let trial = |(name, test): Test| {
        let (problem, ignored) = (problem.clone(), problem.is_some() && !engines_are_required());
        Trial::test(name, move || {
            if let Some(problem) = problem {
                return Err(problem.into());
            }
            // Dropped after the runtime, when nothing is being made any more.
            let stage = Stage::new();
            let runtime = Runtime::new()?;
            test(&stage, &runtime);
            Ok(())
        })
        .with_ignored_flag(ignored)
    };
    let trials = tests.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

#[expect(clippy::disallowed_methods, reason = "the test program's only setting")]
fn engines_are_required() -> bool {
    std::env::var_os("ATOLL_REQUIRE_ENGINES").is_some_and(|value| !value.is_empty())
}
