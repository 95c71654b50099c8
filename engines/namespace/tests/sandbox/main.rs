//! What only this engine promises, beyond the contract.
//!
//! Where the engine's probe fails, for want of root perhaps, the tests are ignored, or fail if
//! `ATOLL_REQUIRE_ENGINES` is set.

#![expect(clippy::unwrap_used, reason = "a test program")]

mod leftovers;
mod posture;
mod roots;
mod stage;

use std::process::ExitCode;

use atoll_engine::Engine as _;
use libtest_mimic::{Arguments, Trial};
use stage::Stage;
use tokio::runtime::Runtime;

/// A test's name, and itself.
type Test = (&'static str, fn(&Stage, &Runtime));

/// The argument with which this program makes a sandbox and dies.
const OWNER: &str = "--be-an-owner";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, role, directory] = &arguments[..]
        && role == OWNER
    {
        leftovers::be_an_owner(directory);
        return ExitCode::SUCCESS;
    }
    let tests: Vec<Test> = [&posture::TESTS[..], &roots::TESTS[..], &leftovers::TESTS[..]].concat();
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
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().map(trial).collect()).exit_code()
}

#[expect(clippy::disallowed_methods, reason = "the test program's only setting")]
fn engines_are_required() -> bool {
    std::env::var_os("ATOLL_REQUIRE_ENGINES").is_some_and(|value| !value.is_empty())
}
