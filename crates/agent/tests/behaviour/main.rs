//! The real program, spoken to as a host would.
#![expect(clippy::unwrap_used, reason = "all of this is tests, helpers too")]

mod archives;
mod files;
mod first;
mod hosts;
mod limits;
mod ports;
mod processes;
mod sealing;
mod support;
mod terminals;
mod unsafe_spawn;
mod watches;
