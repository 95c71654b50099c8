//! A sandbox over agents of every sort: honest, broken, hostile, and the real one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod archives;
mod ends;
mod files;
mod hostile;
mod links;
mod ports;
mod real;
mod search;
mod stage;
mod terminals;
