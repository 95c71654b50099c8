//! The words clients and servers of Atoll exchange.
//!
//! Nothing here does anything: ids that are valid once you hold one, quantities that know their
//! units, and the bodies of requests, results and errors. Request bodies refuse unknown fields.

pub mod e2b;
pub mod engine;
pub mod environment;
pub mod error;
pub mod execution;
pub mod file;
pub mod id;
pub mod key;
pub mod limits;
#[cfg(feature = "openapi")]
mod openapi;
pub mod port;
pub mod process;
pub mod quantity;
pub mod search;
pub mod server;
pub mod session;
pub mod terminal;
pub mod watch;
