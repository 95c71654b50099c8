//! What `atoll doctor` looks at besides the engines themselves.

pub(crate) mod host;
pub(crate) mod known_bad;
pub(crate) mod programs;
mod version;
