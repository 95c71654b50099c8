//! The contract between Atoll and a way of isolating code.
//!
//! An [`Engine`] makes sandboxes; a [`Sandbox`] runs commands and keeps files. Both are small on
//! purpose: what every engine would write again belongs below them, and what only callers find
//! convenient is a function over them ([`exec()`]).
//!
//! Refuse, never ignore: a field of a [`Spec`] that an engine cannot honour is
//! [`ErrorKind::Unsupported`], because a caller may rely on it for safety. Each bullet in these
//! docs has a case in the `conformance` suite that every engine runs.

mod command;
#[cfg(feature = "conformance")]
pub mod conformance;
mod engine;
mod error;
mod exec;
mod files;
mod ports;
mod prepare;
mod sandbox;
mod spec;

pub use atoll_types::{
    engine::{Fact, Grade, Isolation, Strength},
    execution::Reason,
    file::{Entry, Kind, Listing},
    id::{ProcessId, SandboxId},
    limits::{LimitHit, Limits},
    process::{Stream, TerminalSize},
    search::{Edit, Edited, Glob, Grep, Match, Matches},
    watch::Change,
};
pub use command::{Command, MAX_OUTPUT, MAX_TERMINAL_SIDE, Outcome, Process, SCROLLBACK};
pub use engine::{Engine, Probe};
pub use error::{Error, ErrorKind, Result};
pub use exec::{Output, exec};
pub use files::{ByteStream, Changes, Files};
pub use ports::{Duplex, MAX_TUNNELS, Ports, Tunnel};
pub use prepare::{Progress, Report};
pub use sandbox::{Event, Events, Offsets, Sandbox, Usage};
pub use spec::{Image, Mount, Network, Root, Spec};
