//! The TCP ports of the sandbox's loopback.

mod listening;
mod tunnel;

pub(crate) use listening::listening;
pub(crate) use tunnel::{connect, places};
