//! A terminal in a sandbox, used from the one this program runs in.
//!
//! What the guest writes goes to the user's terminal as it is, as with `ssh`: it may colour, draw
//! and ask. What the user's terminal answers belongs to the guest that asked and to nobody else:
//!
//! - what was shown before is shown again without its questions (`watch`): whoever asked them may
//!   be gone, and a shell would take the answers for typing;
//! - when the terminal is left, answers still under way are waited for and thrown away, before the
//!   user's shell could read them ([`Tty::leave`]);
//! - modes the guest has set (alternate screen, mouse, hidden cursor, …) are set back.

mod keys;
mod sequence;
mod sys;
mod tty;
mod visit;
mod watch;

pub(crate) use keys::DetachKeys;
pub(crate) use tty::Tty;
pub(crate) use visit::{Visit, visit};
