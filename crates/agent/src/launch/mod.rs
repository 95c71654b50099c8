//! How commands become processes, and how they and all they started are ended.
//!
//! ```text
//! agent ──(descriptors)──▶ spawner ──fork──▶ keeper ──fork──▶ guest, sealed, then the program
//!   ▲                                          │ ▲                └─ descendants
//!   └──────────── packets: exit, killed ───────┘ └── they reparent to it, never past it
//! ```
//!
//! The spawner is forked before the agent has a second thread, and does nothing but fork: starting
//! a command never holds up the agent. Each command has a keeper, which is the only one to wait
//! for its processes, so an exit code is seen once and a pid is never somebody else's. Keepers
//! have the agent's user and are outside the guests' control groups: guests cannot touch them.
//! Where there is but one user for all, numbers keep them apart instead ([`numbers`]).
//! A keeper whose agent is gone ends its processes and itself.

mod guest;
mod job;
mod keeper;
mod numbers;
mod packet;
mod spawner;
mod start;
mod terminal;
mod tree;

pub(crate) use guest::{Guests, Step, drop_capabilities};
pub(crate) use job::Job;
pub(crate) use numbers::SPAWNER;
pub(crate) use packet::{Order, Report};
pub(crate) use spawner::run as run_spawner;
pub(crate) use start::{Keeper, Launched, Launcher, Source, Streams};
pub(crate) use terminal::{MAX_SIDE, Size, Terminal};
