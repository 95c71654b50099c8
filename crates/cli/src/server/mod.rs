//! The server: `atoll serve` and the private one that commands start for themselves are the same.
//!
//! One data directory has at most one server, which holds a lock for as long as it lives, answers
//! on a socket that only its user can open, and describes itself in a small file beside it:
//!
//! ```text
//!   command ── find ──> daemon.json, daemon.sock ──> there: talk to it
//!      │                                             an older build of ours: stop it, start anew
//!      └── start ── start.lock ──> `atoll daemon run`, in a session of its own
//!                                      │  daemon.lock, store, engines, service, sockets
//!                                      └─ says "ready", or why not, on its standard output
//! ```
//!
//! Sandboxes do not need the server: when it stops they live on, and the next one adopts them.

mod find;
mod idle;
mod lock;
mod logging;
mod place;
mod ready;
mod record;
pub(crate) mod registry;
mod run;
mod start;
mod stop;
mod sys;

pub(crate) use find::{Found, find};
pub(crate) use place::Place;
pub(crate) use ready::Word;
pub(crate) use record::{Mode, Record};
pub(crate) use run::run;
pub(crate) use start::find_or_start;
pub(crate) use stop::stop;
pub(crate) use sys::close_inherited;
