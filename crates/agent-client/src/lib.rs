//! The host's side of the agent: a whole [`Sandbox`](atoll_engine::Sandbox) over any byte stream.
//!
//! An engine makes a place, gives a [`Warden`] that watches it from outside, and is done.

mod program;
mod warden;

pub use program::{agent_bytes, agent_memfd};
pub use warden::{Counters, Link, Warden};
