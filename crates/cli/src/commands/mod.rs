//! One file for each command: what may be typed after it, and what it does.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cp;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod engines;
pub(crate) mod environment;
pub(crate) mod exec;
pub(crate) mod file;
pub(crate) mod key;
pub(crate) mod logs;
pub(crate) mod port_forward;
pub(crate) mod prune;
pub(crate) mod ps;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod sh;
