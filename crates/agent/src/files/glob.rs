//! Finding files by name.

use std::os::fd::AsFd as _;

use atoll_agent_protocol::{
    message::{Done, Entry, Failure, Glob, response::Answer},
    mux::Stream,
};

use super::{
    Files,
    pattern::Pattern,
    place::{describe, entry},
    walk::{Next, Walk},
};
use crate::{calls::say, failure::of_file};

/// Entries of one answer.
const MAX_ENTRIES: usize = 10_000;
/// Bytes of one answer, about.
const MAX_BYTES: usize = 4 << 20;
/// Names visited before others have their turn.
const TURN: usize = 1000;

/// Tells what the pattern names, by name, and whether there is more.
pub(super) async fn glob(files: &Files, ask: Glob, stream: &Stream) -> Result<(), Failure> {
    let pattern = Pattern::new(&ask.pattern, ask.hidden)?;
    let limit = usize::try_from(ask.limit).unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES);
    let path = files.path(&ask.path)?;
    let _turn = files.turn().await?;
    let begin =
        move || Walk::new(&path, pattern).map_err(|cause| of_file(path.asked(), &cause.into()));
    let mut walk = files.pool.run(begin).await??;
    let (mut told, mut bytes, mut truncated) = (0, 0, false);
    loop {
        let turn = move || {
            let found = advance(&mut walk);
            (walk, found)
        };
        let (back, (found, over)) = files.pool.run(turn).await?;
        walk = back;
        for entry in found {
            bytes += entry.path.len() * 2 + entry.target.as_ref().map_or(0, Vec::len) + 48;
            if told == limit || bytes > MAX_BYTES {
                truncated = true;
                break;
            }
            told += 1;
            if !say(stream, Answer::Entry(entry)).await {
                return Ok(());
            }
        }
        if over || truncated {
            break;
        }
    }
    let truncated = truncated || walk.truncated;
    say(stream, Answer::Done(Done { truncated })).await;
    Ok(())
}

/// Goes on for a while; whether that was all.
fn advance(walk: &mut Walk) -> (Vec<Entry>, bool) {
    let mut effort = TURN;
    let mut entries = Vec::new();
    loop {
        match walk.next(&mut effort) {
            Next::Found(found) => entries.extend(look(walk, &found.path)),
            Next::Later => return (entries, false),
            Next::End => return (entries, true),
        }
    }
}

/// What was found; none if it is gone by now.
fn look(walk: &Walk, path: &[u8]) -> Option<Entry> {
    use super::walk::open_below;
    use rustix::fs::OFlags;

    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (Some(&path[..slash]), &path[slash + 1..]),
        None => (None, path),
    };
    let opened = match parent {
        Some(parent) => {
            Some(open_below(walk.root(), parent, OFlags::PATH | OFlags::DIRECTORY).ok()?)
        }
        None => None,
    };
    let directory = opened.as_ref().map_or_else(|| walk.root().as_fd(), |fd| fd.as_fd());
    let c_name = std::ffi::CString::new(name).ok()?;
    let (stat, target) = describe(directory, &c_name).ok()?;
    Some(entry(name, walk.told(path), &stat, target))
}
