//! The part of a watch that touches files, with the guest's rights, a piece at a time.

use std::{
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    sync::{Arc, atomic::AtomicUsize},
};

use rustix::{
    fs::{
        CWD, Dir, FileType, Mode, OFlags, fstat,
        inotify::{self, WatchFlags},
        openat,
    },
    io::{Errno, Result},
};
use tokio::io::unix::AsyncFd;

use super::{
    super::{
        place::{Path, open_at},
        walk::{kind, open_below},
    },
    queue::Queue,
    tree::{Identity, Node, Spot, Tree},
};

/// Names seen before others have their turn.
const TURN: usize = 2000;
/// Names seen in one directory.
const MAX_SEEN: usize = 1_000_000;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

impl Tree {
    /// Watches the directory itself; those below it are work.
    pub(super) fn new(
        inotify: Arc<AsyncFd<OwnedFd>>,
        path: &Path,
        recursive: bool,
        queue: Queue,
        directories: Arc<AtomicUsize>,
    ) -> Result<Self> {
        let root = open_at(CWD, path.as_str(), DIRECTORY, Mode::empty())?;
        let mut tree = Self::empty(inotify, path.clone(), recursive, queue, directories);
        let number = tree.add(&root, path.as_str().as_bytes())?;
        let identity = identity(&root)?;
        tree.root = number;
        let (name, children) = (Vec::new(), std::collections::BTreeMap::new());
        tree.insert(number, Node { parent: None, name, children, identity });
        if recursive {
            tree.read(&root, number, true)?;
        }
        Ok(tree)
    }

    /// What the watched directory is.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.nodes.get(&self.root).map(|root| root.identity)
    }

    pub(super) fn has_work(&self) -> bool {
        !(self.initial.is_empty() && self.later.is_empty() && self.garbage.is_empty())
    }

    /// Does a piece of what is to be done.
    pub(super) fn work(&mut self) {
        for number in std::mem::take(&mut self.garbage) {
            // Most are gone by themselves.
            let _ = inotify::remove_watch(self.inotify.get_ref(), number);
        }
        if self.initial.is_empty() && self.later.is_empty() {
            return;
        }
        let root = open_at(CWD, self.path.as_str(), DIRECTORY, Mode::empty());
        let root = match root {
            Ok(root) if identity(&root).ok() == self.identity() => root,
            _ => return self.end(),
        };
        let mut effort = TURN;
        while effort > 0 {
            let initial = !self.initial.is_empty();
            let next = self.initial.pop_front().or_else(|| self.later.pop_front());
            let Some(spot) = next else { return };
            effort = effort.saturating_sub(1 + self.enter(&root, spot, initial));
        }
    }

    /// Watches a directory and looks at what it holds; how many names that were.
    fn enter(&mut self, root: &OwnedFd, spot: Spot, initial: bool) -> usize {
        if self.watches(&spot) || !self.nodes.contains_key(&spot.0) {
            return 0;
        }
        match self.try_enter(root, &spot, initial) {
            Ok(seen) => seen,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE) => {
                self.doubt(spot);
                0
            }
            Err(_) => {
                self.cannot_watch(&spot);
                0
            }
        }
    }

    fn try_enter(&mut self, root: &OwnedFd, spot: &Spot, initial: bool) -> Result<usize> {
        let path = self.path_of(spot).ok_or(Errno::NAMETOOLONG)?;
        let parent = self.open_node(root, spot.0)?;
        let parent = parent.as_ref().map_or_else(|| root.as_fd(), |parent| parent.as_fd());
        let directory = openat(parent, &spot.1[..], DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        let number = self.add(&directory, &path)?;
        if let Some(known) = self.nodes.get(&number) {
            // It was watched under the name it had: where that is now is to be seen.
            if let Some(parent) = known.parent {
                let old = (parent, known.name.clone());
                self.relink(number, spot.clone());
                self.doubt(old);
            }
            return Ok(0);
        }
        let (identity, name) = (identity(&directory)?, spot.1.clone());
        let children = std::collections::BTreeMap::new();
        self.insert(number, Node { parent: Some(spot.0), name, children, identity });
        self.read(&directory, number, initial)
    }

    /// Opens a directory that is watched, if it is where it should be. None: it is the root.
    fn open_node(&self, root: &OwnedFd, number: i32) -> Result<Option<OwnedFd>> {
        if number == self.root {
            return Ok(None);
        }
        let below = self.below(number).ok_or(Errno::NAMETOOLONG)?;
        let opened = open_below(root, &below, OFlags::PATH | OFlags::DIRECTORY)?;
        let expected = self.nodes.get(&number).map(|node| node.identity);
        if Some(identity(&opened)?) != expected {
            return Err(Errno::STALE);
        }
        Ok(Some(opened))
    }

    /// Has the kernel watch an open directory.
    fn add(&self, directory: &OwnedFd, path: &[u8]) -> Result<i32> {
        let what = WatchFlags::CREATE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::EXCL_UNLINK
            | WatchFlags::ONLYDIR;
        // The call takes no descriptor: this is the way to name what is open already.
        let open = format!("/proc/self/fd/{}", directory.as_raw_fd());
        match inotify::add_watch(self.inotify.get_ref(), open, what) {
            // No `/proc`: then by its path, and what that is meanwhile is the guest's affair.
            Err(Errno::NOENT | Errno::ACCESS) => {
                inotify::add_watch(self.inotify.get_ref(), path, what | WatchFlags::DONT_FOLLOW)
            }
            result => result,
        }
    }

    /// Looks at what a directory holds, after it is watched: what is in it is told, unless it was
    /// there when all began, and directories are to be watched in turn.
    fn read(&mut self, directory: &OwnedFd, number: i32, initial: bool) -> Result<usize> {
        let mut seen = 0;
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            seen += 1;
            if seen > MAX_SEEN {
                self.cannot_watch(&(number, name.to_vec()));
                break;
            }
            let spot = (number, name.to_vec());
            let of_directory = kind(directory, &entry) == FileType::Directory;
            if !initial {
                self.tell_found(spot.clone(), of_directory);
            }
            if !of_directory || self.watches(&spot) {
                continue;
            }
            if !initial {
                self.enter_later(spot);
            } else if self.has_room() {
                self.initial.push_back(spot);
            } else {
                self.cannot_watch(&spot);
            }
        }
        Ok(seen)
    }
}

fn identity(directory: &OwnedFd) -> Result<Identity> {
    let stat = fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}
