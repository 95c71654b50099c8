//! The service on the real local engine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::cloned_ref_to_slice_refs, reason = "a list of one reads as a list")]

mod executions;
mod languages;
mod restart;
mod sessions;
mod world;
