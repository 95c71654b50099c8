//! Directories as tar archives, and back, with nothing taken on trust.
//!
//! Both ends of a copy use this: the agent, for the guest's own tree, and the command line, for a
//! directory of the host into which an archive out of a sandbox goes. So there is one walk that
//! follows no link, one reader of a format that invites quarrels, and one place that decides what
//! an archive may write where.
//!
//! [`Packer`] and [`Unpacker`] are fed piece by piece and do a bounded amount of work each time:
//! whoever drives them keeps no thread for as long as a slow peer likes. That, and names with
//! every byte a file system allows, is why this is no wrapper around a library of blocking
//! readers.

mod beneath;
mod draft;
mod failure;
mod header;
mod left_out;
mod name;
mod pack;
mod pax;
mod read;
mod survey;
mod unpack;
mod walk;

pub use failure::{Cause, Failed};
pub use left_out::{Contents, LeftOut, Why};
pub use name::shown;
pub use pack::Packer;
pub use survey::Survey;
pub use unpack::Unpacker;
