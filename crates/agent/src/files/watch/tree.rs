//! Which of the kernel's numbers stands for which directory, and what an event means.
//!
//! Directories know their parents, so one that is moved takes all below it along at no cost. The
//! events of the past are read in a present that has moved on: what is not where an event says is
//! a *doubt*, and looked for again once there are no more events.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use atoll_agent_protocol::message::{Change, ChangeKind};
use rustix::fs::inotify::ReadFlags;
use tokio::io::unix::AsyncFd;

use super::{
    super::{drafts, place::Path},
    event::{Batch, Event},
    queue::Queue,
};

/// Directories of one watch.
pub(super) const MAX_DIRECTORIES: usize = 16_384;
/// Bytes of a path that is told; a kernel takes fewer than this at once.
const MAX_PATH: usize = 4096;
/// Names told before the kernel could, and names in doubt.
const MAX_TOLD: usize = 8192;
const MAX_DOUBTS: usize = 1024;
/// Events between the halves of a move, at most.
const APART: usize = 32;

/// A name in a directory.
pub(super) type Spot = (i32, Vec<u8>);
/// Device and inode.
pub(super) type Identity = (u64, u64);

#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: Option<i32>,
    pub(super) name: Vec<u8>,
    pub(super) children: BTreeMap<Vec<u8>, i32>,
    pub(super) identity: Identity,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// What was there when it began is not all watched yet.
    Beginning,
    /// There is more to do.
    Behind,
    /// All that happened is known.
    Quiet,
    /// Something happened that is not known: begin anew.
    Lost,
    /// The directory is no longer there.
    Gone,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they have nothing to do with each other")]
pub(super) struct Tree {
    pub(super) inotify: Arc<AsyncFd<OwnedFd>>,
    pub(super) path: Path,
    pub(super) recursive: bool,
    pub(super) nodes: HashMap<i32, Node>,
    pub(super) root: i32,
    /// Directories that were there when it began, still to be watched.
    pub(super) initial: VecDeque<Spot>,
    /// Directories that came later.
    pub(super) later: VecDeque<Spot>,
    /// Numbers the kernel need not keep.
    pub(super) garbage: Vec<i32>,
    pub(super) queue: Queue,
    doubts: HashSet<Spot>,
    /// Doubts that are looked into, for the last time.
    retried: HashSet<Spot>,
    /// Names found by looking, which the kernel may be about to tell.
    told: HashSet<Spot>,
    /// The first half of a move.
    half: Option<Event>,
    pub(super) unwatched: bool,
    pub(super) lost: bool,
    pub(super) gone: bool,
    /// Those of all watches.
    pub(super) directories: Arc<AtomicUsize>,
}

impl Tree {
    pub(super) fn empty(
        inotify: Arc<AsyncFd<OwnedFd>>,
        path: Path,
        recursive: bool,
        queue: Queue,
        directories: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            inotify,
            path,
            recursive,
            nodes: HashMap::new(),
            root: 0,
            initial: VecDeque::new(),
            later: VecDeque::new(),
            garbage: Vec::new(),
            queue,
            doubts: HashSet::new(),
            retried: HashSet::new(),
            told: HashSet::new(),
            half: None,
            unwatched: false,
            lost: false,
            gone: false,
            directories,
        }
    }

    /// Where things stand. `more` if there may be events that were not taken.
    pub(super) fn state(&mut self, more: bool) -> State {
        if self.gone {
            return State::Gone;
        }
        if self.lost {
            return State::Lost;
        }
        if !self.initial.is_empty() {
            return State::Beginning;
        }
        if more || self.has_work() {
            return State::Behind;
        }
        self.told.clear();
        self.retried = std::mem::take(&mut self.doubts);
        if self.retried.is_empty() {
            return State::Quiet;
        }
        self.later.extend(self.retried.iter().cloned());
        State::Behind
    }

    pub(super) fn waits_for_half(&self) -> bool {
        self.half.is_some()
    }

    /// The other half does not come: it was moved away.
    pub(super) fn give_up_half(&mut self) {
        if let Some(half) = self.half.take() {
            self.removed(&half);
        }
    }

    /// Takes in what happened.
    pub(super) fn digest(&mut self, batch: Batch) {
        if batch.events.is_empty() {
            return;
        }
        let carried = self.half.take();
        let had_half = carried.is_some();
        let mut events: Vec<_> = carried.into_iter().chain(batch.events).map(Some).collect();
        for index in 0..events.len() {
            let Some(event) = events[index].take() else { continue };
            if !event.is(ReadFlags::MOVED_FROM) {
                self.happened(&event);
                continue;
            }
            let end = events.len().min(index + APART);
            let other = events[index..end].iter_mut().find(|other| {
                other.as_ref().is_some_and(|other| {
                    other.is(ReadFlags::MOVED_TO) && other.cookie == event.cookie
                })
            });
            let waited = had_half && index == 0;
            match other.and_then(Option::take) {
                Some(other) => self.moved(&event, &other),
                None if index + 1 == events.len() && !waited => self.half = Some(event),
                None => self.removed(&event),
            }
        }
    }

    fn happened(&mut self, event: &Event) {
        if event.is(ReadFlags::QUEUE_OVERFLOW) {
            self.lost = true;
        }
        if !self.nodes.contains_key(&event.directory) {
            return;
        }
        if event.name.is_empty() {
            return self.happened_to_itself(event);
        }
        if event.is(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            self.created(event);
        } else if event.is(ReadFlags::DELETE) {
            self.removed(event);
        } else if event.is(ReadFlags::MODIFY) {
            self.tell(ChangeKind::Written, event);
        } else if event.is(ReadFlags::ATTRIB) {
            self.tell(ChangeKind::Attributes, event);
        }
    }

    /// Of others than the root, the directory above tells as well.
    fn happened_to_itself(&mut self, event: &Event) {
        let over =
            ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT | ReadFlags::IGNORED;
        if event.directory == self.root {
            if event.is(over) {
                self.end();
            } else if event.is(ReadFlags::ATTRIB) {
                self.push(ChangeKind::Attributes, self.path.as_str().into(), Vec::new(), true);
            }
        } else if event.is(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
            self.forget(event.directory);
        }
    }

    /// The directory itself is no longer what it was.
    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.gone, true) {
            self.push(ChangeKind::Removed, self.path.as_str().into(), Vec::new(), true);
        }
    }

    fn created(&mut self, event: &Event) {
        let of_directory = event.of_directory();
        let spot = (event.directory, event.name.clone());
        // A move from elsewhere may put something else in the place of what was told.
        let known = self.told.remove(&spot) && event.is(ReadFlags::CREATE);
        if !known {
            self.tell(ChangeKind::Created, event);
        }
        if of_directory && self.recursive && !self.watches(&spot) {
            self.enter_later(spot);
        }
    }

    fn removed(&mut self, event: &Event) {
        if !self.nodes.contains_key(&event.directory) {
            return;
        }
        self.tell(ChangeKind::Removed, event);
        let spot = (event.directory, event.name.clone());
        self.told.remove(&spot);
        self.doubts.remove(&spot);
        if let Some(child) = self.child(&spot) {
            self.forget(child);
        }
    }

    fn moved(&mut self, from: &Event, to: &Event) {
        let known = [from, to].map(|event| self.nodes.contains_key(&event.directory));
        match known {
            [true, true] => {}
            [true, false] => return self.removed(from),
            [false, true] => return self.created(to),
            [false, false] => return,
        }
        let (old, new) = ((from.directory, from.name.clone()), (to.directory, to.name.clone()));
        match (drafts::ours(&from.name), self.path_of(&old), self.path_of(&new)) {
            // What a host wrote is in its place.
            (Some(true), _, Some(path)) => {
                self.push(ChangeKind::Written, path, Vec::new(), false);
            }
            (Some(false), _, Some(path)) => {
                self.push(ChangeKind::Created, path, Vec::new(), false);
            }
            (None, Some(from), Some(path)) => {
                self.push(ChangeKind::Moved, path, from, to.of_directory());
            }
            _ => self.queue.overflow(),
        }
        self.told.remove(&old);
        self.doubts.remove(&old);
        if !to.of_directory() || !self.recursive {
            return;
        }
        match self.child(&old) {
            Some(child) => self.relink(child, new),
            None => self.enter_later(new),
        }
    }

    fn child(&self, (parent, name): &Spot) -> Option<i32> {
        self.nodes.get(parent)?.children.get(name).copied()
    }

    pub(super) fn watches(&self, spot: &Spot) -> bool {
        self.child(spot).is_some()
    }

    /// Has a directory watched that came later.
    pub(super) fn enter_later(&mut self, spot: Spot) {
        if self.has_room() {
            self.later.push_back(spot);
        } else {
            self.cannot_watch(&spot);
        }
    }

    pub(super) fn has_room(&self) -> bool {
        let waiting = self.initial.len() + self.later.len();
        self.nodes.len() + waiting < MAX_DIRECTORIES
            && self.directories.load(Ordering::Relaxed) + waiting < super::DIRECTORIES
    }

    /// Says once that not all is watched.
    pub(super) fn cannot_watch(&mut self, spot: &Spot) {
        if !std::mem::replace(&mut self.unwatched, true) {
            let path = self.path_of(spot).unwrap_or_else(|| self.path.as_str().into());
            self.push(ChangeKind::Unwatched, path, Vec::new(), true);
        }
    }

    /// It was not where it should be. One that is not there the second time either is gone.
    pub(super) fn doubt(&mut self, spot: Spot) {
        if self.retried.remove(&spot) {
            return;
        }
        if self.doubts.len() < MAX_DOUBTS {
            self.doubts.insert(spot);
        } else {
            self.lost = true;
        }
    }

    /// Something was found by looking; the kernel may tell it again.
    pub(super) fn tell_found(&mut self, spot: Spot, directory: bool) {
        if let Some(path) = self.path_of(&spot)
            && drafts::ours(&spot.1).is_none()
        {
            self.push(ChangeKind::Created, path, Vec::new(), directory);
        }
        if self.told.len() < MAX_TOLD {
            self.told.insert(spot);
        }
    }

    pub(super) fn insert(&mut self, number: i32, node: Node) {
        if let Some(above) = node.parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            above.children.insert(node.name.clone(), number);
        }
        self.directories.fetch_add(1, Ordering::Relaxed);
        self.nodes.insert(number, node);
    }

    /// Gives a directory another place in the tree.
    pub(super) fn relink(&mut self, number: i32, (parent, name): Spot) {
        if let Some(other) = self.child(&(parent, name.clone()))
            && other != number
        {
            self.forget(other);
        }
        let mut above = Some(parent);
        for _ in 0..=self.nodes.len() {
            if above == Some(number) {
                // No tree has that: something was missed.
                self.lost = true;
                return;
            }
            above = above.and_then(|above| self.nodes.get(&above)).and_then(|node| node.parent);
        }
        let Some(node) = self.nodes.get_mut(&number) else { return };
        let old = node.parent.replace(parent);
        let old_name = std::mem::replace(&mut node.name, name.clone());
        if let Some(old) = old.and_then(|old| self.nodes.get_mut(&old))
            && old.children.get(&old_name) == Some(&number)
        {
            old.children.remove(&old_name);
        }
        if let Some(above) = self.nodes.get_mut(&parent) {
            above.children.insert(name, number);
        }
    }

    /// A directory and all below it need not be watched any more.
    pub(super) fn forget(&mut self, number: i32) {
        if let Some(Node { parent: Some(parent), name, .. }) = self.nodes.get(&number) {
            let (parent, name) = (*parent, name.clone());
            if let Some(above) = self.nodes.get_mut(&parent)
                && above.children.get(&name) == Some(&number)
            {
                above.children.remove(&name);
            }
        }
        let mut below = vec![number];
        while let Some(number) = below.pop() {
            if let Some(node) = self.nodes.remove(&number) {
                below.extend(node.children.into_values());
                self.garbage.push(number);
                self.directories.fetch_sub(1, Ordering::Relaxed);
                self.unwatched = false;
            }
        }
    }

    /// The path of a name, from the root; none if it is too long to tell.
    pub(super) fn path_of(&self, (parent, name): &Spot) -> Option<Vec<u8>> {
        let below = self.below(*parent)?;
        let base = self.path.as_str().trim_end_matches('/').as_bytes();
        let parts = [base, &below, name];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let mut path = parts.join(&b'/');
        if base.is_empty() {
            path.insert(0, b'/');
        }
        (path.len() <= MAX_PATH).then_some(path)
    }

    /// The path of a directory, from the watched one.
    pub(super) fn below(&self, number: i32) -> Option<Vec<u8>> {
        let (mut names, mut length) = (Vec::new(), 0);
        let mut here = self.nodes.get(&number)?;
        while let Some(parent) = here.parent {
            names.push(&here.name[..]);
            length += here.name.len() + 1;
            if length > MAX_PATH {
                return None;
            }
            here = self.nodes.get(&parent)?;
        }
        names.reverse();
        Some(names.join(&b'/'))
    }

    fn tell(&self, kind: ChangeKind, event: &Event) {
        // Not in its place yet: nobody's affair.
        if drafts::ours(&event.name).is_some() {
            return;
        }
        match self.path_of(&(event.directory, event.name.clone())) {
            Some(path) => self.push(kind, path, Vec::new(), event.of_directory()),
            None => self.queue.overflow(),
        }
    }

    fn push(&self, kind: ChangeKind, path: Vec<u8>, from: Vec<u8>, directory: bool) {
        self.queue.push(Change { kind: kind.into(), path, from, directory });
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.directories.fetch_sub(self.nodes.len(), Ordering::Relaxed);
    }
}
