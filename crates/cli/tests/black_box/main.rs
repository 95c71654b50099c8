//! The real program, on a data directory of its own, with the real `namespace` engine.
//!
//! It needs root. Without it the cases are ignored on a laptop, and failed where
//! `ATOLL_REQUIRE_ENGINES` is set, as CI does: what was not run must not look like a pass.

#![expect(clippy::unwrap_used, reason = "a case fails by panicking")]

mod atoll;
mod daemon;
mod files;
mod logs;
mod ordinary;
mod ports;
mod run;
mod search;
mod serve;
mod sessions;
mod terminal;
mod tmux;
mod trees;
mod usage;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A case: its name, which is a claim, and what shows it.
type Case = (&'static str, fn());

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let isolating = [
        run::CASES,
        sessions::CASES,
        files::CASES,
        trees::CASES,
        search::CASES,
        ports::CASES,
        logs::CASES,
        daemon::CASES,
        serve::CASES,
        ordinary::CASES,
    ]
    .concat();
    let ignored = !rustix::process::geteuid().is_root() && !engines_required();
    let isolating = isolating.into_iter().map(|case| trial(case).with_ignored_flag(ignored));
    // These need more: a terminal, and what people run in one.
    let ignored = ignored || (!tmux::is_there() && !engines_required());
    let terminals = terminal::CASES.iter().copied().map(trial);
    let isolating = isolating.chain(terminals.map(|case| case.with_ignored_flag(ignored)));
    let trials = isolating.chain(usage::CASES.iter().copied().map(trial)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial((name, case): Case) -> Trial {
    Trial::test(name, move || {
        case();
        Ok(())
    })
}

#[expect(clippy::disallowed_methods, reason = "what CI asks of tests is in the environment")]
fn engines_required() -> bool {
    std::env::var_os("ATOLL_REQUIRE_ENGINES").is_some()
}
