//! Whole directories, into a session, out of it, and from one to another.
//!
//! What comes out of a sandbox is the guest's word: it is unpacked by `atoll_archive`, which writes
//! nothing outside the destination and nothing through a link.

mod download;
mod relay;
mod rules;
mod stopped;
mod umask;
mod unfinished;
mod upload;

use atoll_archive::{Contents, LeftOut};
use serde::Serialize;

pub(crate) use download::download;
pub(crate) use relay::{from_stream, relay, to_stream};
pub(crate) use rules::{is_tree, refuse_link};
pub(crate) use upload::upload;

use crate::{failure::Result, printer::Printer};

/// Exit code of a copy that lacks content of its original, as other tools for copying have it.
const PARTIAL: u8 = 1;

/// What was copied, for programs.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    entries: u64,
    bytes: u64,
    left_out: u64,
    /// The first of them, each with the reason.
    left_out_names: &'a [String],
}

/// Tells how a copy went, and returns its exit code.
fn summary(printer: Printer, copied: &Contents) -> Result<u8> {
    let Contents { entries, bytes, left_out } = copied;
    tell(printer, left_out);
    if printer.json_asked_for() {
        let summary = Summary {
            entries: *entries,
            bytes: *bytes,
            left_out: left_out.count(),
            left_out_names: left_out.told(),
        };
        printer.answer(&summary, String::new)?;
    }
    Ok(if left_out.lost() > 0 { PARTIAL } else { 0 })
}

fn tell(printer: Printer, left_out: &LeftOut) {
    /// Names that fit on a screen beside other things.
    const NAMES: usize = 5;
    if left_out.count() == 0 {
        return;
    }
    let names = left_out.told();
    let more = left_out.count().saturating_sub(NAMES.min(names.len()) as u64);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let names = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
    printer.note(format_args!("not copied as it is: {names}{more}"));
}
