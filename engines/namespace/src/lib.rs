//! Sandboxes of Linux namespaces: no daemon, no image, a few milliseconds.
//!
//! A sandbox is a tree of processes in namespaces of its own, with the agent as its first one, a
//! file system of its own, ids of its own on the host, and two control groups: the agent's and
//! the guests'. The daemon decides what it is made of ([`plan`]); the launcher, a small program
//! run once, makes it; afterwards it depends on neither. What there is to know about it is in
//! its directory under the state directory ([`place`], [`record`]), so that another daemon finds
//! it, or what is left of it, and can end it.

mod allowance;
mod attempt;
mod boot;
mod config;
mod engine;
mod ids;
mod launch;
mod limits;
mod maker;
mod place;
mod plan;
mod probe;
mod process;
mod record;
mod root;
mod sandbox;
mod sys;

pub use atoll_launcher::Weakness;
pub use config::Config;
pub use engine::NamespaceEngine;
