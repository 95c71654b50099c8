//! What host and agent say to each other, and how it is carried.
//!
//! [`message`] has the words, [`mux`] the many flow-controlled streams over one byte stream.

mod frame;
pub mod message;
pub mod mux;
