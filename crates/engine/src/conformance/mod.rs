//! The suite every engine runs.
//!
//! Each case is a plain async function whose name is the claim it tests; each bullet of the
//! contract's docs has at least one. An engine's `tests/conformance.rs` is a [`Subject`] and a
//! call of [`run`]:
//!
//! ```ignore
//! fn main() -> ExitCode {
//!     conformance::run(&Subject::new(
//!         |directory| Arc::new(LocalEngine::new(directory)),
//!         include_str!("unsupported.txt"),
//!     ))
//! }
//! ```
//!
//! Cases need `/bin/sh`, the basic tools of a Debian system, and its `perl` for sockets.

mod archives;
mod case;
mod environment;
mod files;
mod lifecycle;
mod limits;
mod listing;
mod mounts;
mod network;
pub mod ordinary;
pub mod paths;
mod ports;
mod processes;
mod scratch;
mod screen;
mod scrollback;
mod search;
mod signals;
mod stage;
mod stdin;
mod streams;
mod suite;
mod terminals;
mod uploads;
mod watching;

pub use case::{Case, Failure};
pub use stage::{Stage, Subject};
pub use suite::run;

/// Every case, whichever engines refuse it.
pub fn cases() -> Vec<Case> {
    [
        processes::cases(),
        signals::cases(),
        streams::cases(),
        stdin::cases(),
        terminals::cases(),
        scrollback::cases(),
        limits::cases(),
        files::cases(),
        uploads::cases(),
        archives::cases(),
        paths::cases(),
        search::cases(),
        watching::cases(),
        environment::cases(),
        network::cases(),
        ports::cases(),
        mounts::cases(),
        lifecycle::cases(),
        listing::cases(),
    ]
    .concat()
}
