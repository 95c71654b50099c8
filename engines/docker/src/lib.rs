//! Sandboxes that are containers of Docker, or of Podman through Docker's API.
//!
//! The daemon makes the container; Atoll's own agent is its first program, whatever the image
//! would have run. See `README.md` for what a sandbox is made of.

mod boot;
mod build;
mod config;
mod container;
mod credentials;
mod daemon;
mod engine;
mod files;
mod image;
mod labels;
mod limits;
mod mounts;
mod place;
mod probe;
mod pull;
mod sandbox;
mod sys;

pub use config::{Config, Weakness};
pub use engine::DockerEngine;
