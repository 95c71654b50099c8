//! The names of files on their way into place, so that a watch can tell the file alone.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// What every such name begins with.
pub(super) const PREFIX: &str = ".atoll-";
/// Names remembered: events about them may come after they are gone.
const MOST: usize = 1024;

static NAMES: Mutex<VecDeque<(Vec<u8>, bool)>> = Mutex::new(VecDeque::new());

/// Remembers a name of ours, and whether it is to replace something.
pub(super) fn remember(name: &[u8], replaces: bool) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if names.len() == MOST {
        names.pop_front();
    }
    names.push_back((name.to_vec(), replaces));
}

/// Whether a name is ours, and then whether it was to replace something. A guest's own files are
/// never taken for ours, whatever they are called.
pub(super) fn ours(name: &[u8]) -> Option<bool> {
    if !name.starts_with(PREFIX.as_bytes()) {
        return None;
    }
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.iter().rev().find(|(ours, _)| ours == name).map(|(_, replaces)| *replaces)
}
