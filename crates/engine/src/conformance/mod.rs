//! The suite every engine runs.
