//! The surface over a real service and a real engine: most of it without a socket.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod archives;
mod attach;
mod errors;
mod executions;
mod files;
mod ports;
mod processes;
mod search;
mod server;
mod sessions;
mod sockets;
mod terminals;
mod world;
