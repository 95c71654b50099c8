//! The description of the API: generated from the handlers, checked in, and served as it is.
//!
//! To change it, change a handler or a wire type, run
//! `ATOLL_UPDATE_OPENAPI=1 cargo test -p atoll-api openapi`, and read the difference as the change
//! of the API that it is.

/// The checked-in document.
pub(crate) const TEXT: &str = include_str!("../openapi.json");

#[cfg(test)]
mod tests;
