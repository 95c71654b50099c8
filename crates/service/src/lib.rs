//! What Atoll does, without saying how it is reached or how code is isolated.
//!
//! [`Service`] keeps sessions, runs executions and remembers both in the store. It knows engines
//! only by their contract and no HTTP at all.

mod clock;
mod engines;
mod environments;
mod error;
mod executions;
mod files;
mod id;
mod keys;
mod languages;
mod lifecycle;
mod limits;
mod live;
mod metrics;
mod mounts;
mod ports;
mod prepare;
mod processes;
mod reaper;
mod reconcile;
mod search;
mod service;
mod sessions;
mod settings;

pub use atoll_engine::{
    ByteStream, Engine, Error as EngineError, ErrorKind as EngineErrorKind, Event, Events, Offsets,
    Outcome, Progress,
};
pub use atoll_store::Store;
pub use engines::Engines;
pub use error::{Code, Error, Result};
pub use keys::Identity;
pub use lifecycle::{LifecycleEvent, Refused, after};
pub use mounts::{AllowedMount, MountPolicy};
pub use ports::PortStream;
pub use prepare::{Preparation, Prepared};
pub use reconcile::Reconciled;
pub use service::Service;
pub use sessions::{SessionFilter, Wanted};
pub use settings::Settings;
