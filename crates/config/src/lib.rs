//! Settings: the only reader of files and environment for them.
//!
//! [`DEFAULTS`] documents every key and *is* the defaults. A file, the environment and flags are
//! laid over it in that order by [`load()`], which refuses what it does not know, and the result is
//! plain values. Nothing else in Atoll reads an environment variable (`clippy.toml` sees to it).

mod error;
mod layer;
mod load;
mod near;
mod origin;
mod place;
mod secret;
mod settings;
mod surroundings;
pub mod variable;

pub use error::{Error, Result};
pub use load::{Flags, Loaded, load};
pub use near::near;
pub use origin::Origin;
pub use secret::Secret;
pub use settings::{
    AllowedMount, Client, Engines, LimitSettings, Mounts, Server, Sessions, Settings,
};
pub use surroundings::Surroundings;

/// The documented defaults, as `atoll config default` prints them.
pub const DEFAULTS: &str = include_str!("default.toml");
