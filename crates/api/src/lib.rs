//! The HTTP surface: authenticates, translates, streams, and decides nothing else.
//!
//! [`router`] is a value: tests call it without a socket. [`serve()`] puts it behind TCP (plain or
//! TLS) and the private unix socket. A route exists only as a row of
//! [`Routes`](access::Routes), which cannot be written without saying who may use it.
//!
//! **What a client's disconnect does** is decided per handler:
//! - *Executions* are dropped with their client: the program and all it started end.
//! - *Making and ending a session* go on without their client, in the service; one made for a
//!   client that left is removed again, since nobody can know its id.
//! - *Terminals* go on without anyone looking.
//! - *Everything else* is dropped where it is; a file is written whole or not at all.

mod access;
mod app;
mod archives;
mod content;
mod e2b;
mod engines;
mod environments;
mod error;
mod events;
mod executions;
mod extract;
mod files;
mod json;
mod keys;
mod observe;
mod openapi;
mod origin;
mod peer;
mod ports;
mod processes;
mod search;
mod serve;
mod server;
mod sessions;
mod terminal;
mod upgrade;
mod wording;

pub use app::{Settings, install_metrics, router};
pub use peer::Peer;
pub use serve::{Listener, Tls, UnixSocket, Unusable, serve};
