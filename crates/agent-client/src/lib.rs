//! The host's side of the agent: a whole [`Sandbox`](atoll_engine::Sandbox) over any byte stream.
//!
//! An engine makes a place, gives a [`Warden`] that watches it from outside, and is done.

mod archive;
pub mod cgroup;
mod changes;
mod entry;
mod events;
mod failure;
mod files;
mod ledger;
mod line;
mod note;
mod order;
mod ports;
pub mod private;
mod program;
mod sandbox;
pub mod seal;
mod search;
mod text;
mod tunnel;
mod verdict;
mod warden;
mod watch;

pub use program::{agent_bytes, agent_memfd};
pub use sandbox::AgentSandbox;
pub use warden::{Counters, Link, Warden};
