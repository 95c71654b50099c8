//! Runs the hostile tier. `README.md` beside it says how to read a run.

use std::process::ExitCode;

fn main() -> ExitCode {
    atoll_hostile::harness::main()
}
