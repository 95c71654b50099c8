//! The processes hosts have started: what they wrote, how they ended, and how to reach them.

mod attach;
mod input;
mod log;
mod pace;
mod run;
mod start;
mod table;

pub(crate) use attach::attach;
pub(crate) use input::Input;
pub(crate) use start::{Starter, start};
pub(crate) use table::{Ask, Table};
