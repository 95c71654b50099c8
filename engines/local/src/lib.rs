//! Sandboxes that are nothing but processes of this host, for code that is known and trusted.
//!
//! Each is an agent of its own in a session of its own, with a directory for its files. The agent
//! outlives the daemon; what a sandbox started cannot leave the agent's tree, so all of it is
//! found and ended with it. Nothing keeps the code from the rest of the host, which is why a
//! [`Spec`](atoll_engine::Spec) that is not trusted is refused, and so is every limit that would
//! need a fence around the whole.

mod config;
mod directory;
mod engine;
mod probe;
mod process;
mod record;
mod sandbox;
mod tree;
mod unsafe_spawn;
mod unsafe_vigil;
mod venv;

pub use config::Config;
pub use engine::LocalEngine;
