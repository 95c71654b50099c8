//! What a directory holds.

use std::{
    collections::BinaryHeap,
    ffi::CString,
    os::fd::{AsFd as _, OwnedFd},
};

use atoll_agent_protocol::{
    message::{Done, Entry, Failure, response::Answer},
    mux::Stream,
};
use rustix::{
    fs::{CWD, Dir, Mode, OFlags},
    io::Errno,
};

use super::{
    Files,
    place::{Path, describe, entry, open_at},
};
use crate::{calls::say, failure::of_file};

/// Entries of one answer.
const MAX_ENTRIES: usize = 10_000;
/// Bytes of one answer, about.
const MAX_BYTES: usize = 2 << 20;
/// Entries looked at to find the first by name.
const MAX_SEEN: usize = 1_000_000;

/// Tells the entries that come first by name, and whether there are more.
pub(super) async fn list(files: &Files, path: &str, stream: &Stream) -> Result<(), Failure> {
    let path = files.path(path)?;
    let what = path.asked().to_owned();
    let listed = files.pool.run(move || entries(&path)).await?;
    let (entries, truncated) = listed.map_err(|cause| of_file(&what, &cause.into()))?;
    for entry in entries {
        if !say(stream, Answer::Entry(entry)).await {
            return Ok(());
        }
    }
    say(stream, Answer::Done(Done { truncated })).await;
    Ok(())
}

fn entries(path: &Path) -> Result<(Vec<Entry>, bool), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let directory = open_at(CWD, path.as_str(), flags, Mode::empty())?;
    let (names, mut truncated) = first_names(&directory)?;
    let base = path.as_str().trim_end_matches('/');
    let mut bytes = 0;
    let mut entries = Vec::new();
    for name in names {
        // One that is gone by now is no longer there to be told.
        let Ok((stat, target)) = describe(directory.as_fd(), &name) else { continue };
        let name = name.as_bytes();
        let full = [base.as_bytes(), b"/", name].concat();
        bytes += full.len() + name.len() + target.as_ref().map_or(0, Vec::len) + 48;
        if bytes > MAX_BYTES {
            truncated = true;
            break;
        }
        entries.push(entry(name, full, &stat, target));
    }
    Ok((entries, truncated))
}

/// The names that come first, in order, and whether there are more. Never keeps more than it tells.
fn first_names(directory: &OwnedFd) -> Result<(Vec<CString>, bool), Errno> {
    let mut first = BinaryHeap::new();
    let mut truncated = false;
    for (seen, entry) in Dir::read_from(directory)?.enumerate() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if seen > MAX_SEEN {
            truncated = true;
            break;
        }
        first.push(name.to_owned());
        if first.len() > MAX_ENTRIES {
            first.pop();
            truncated = true;
        }
    }
    Ok((first.into_sorted_vec(), truncated))
}
