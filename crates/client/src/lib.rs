//! Talks to an Atoll server: over its private unix socket, or over TCP with a key.
//!
//! One method per route, named as the service names it. Files and process output are streams, so
//! their size is never this crate's concern. A server that says no is [`Error::Refused`]; one
//! that cannot be reached, or goes away, is something else, because a caller does something else
//! about it.

mod body;
mod client;
mod connect;
mod e2b;
mod environments;
mod error;
mod events;
mod executions;
mod files;
mod ports;
mod processes;
mod query;
mod search;
mod server;
mod sessions;
mod sse;
mod terminal;
mod trust;
mod upgrade;

pub use client::Client;
pub use environments::Preparation;
pub use error::{Error, Refused, Result};
pub use events::{Event, Events};
pub use files::Download;
pub use search::Changes;
pub use sessions::Filter;
pub use terminal::{Opening, Shown, Terminal, TerminalInput, TerminalOutput};
pub use trust::Trust;
pub use upgrade::Tunnel;
