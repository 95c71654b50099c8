//! Goes through a tree by name, a little at a time, and finds what a pattern names.
//!
//! Every directory is opened from the one the walk began at, without following any link, so there
//! are no circles and no way out. Kept are the names still to be visited, up to a bound.

use std::{
    collections::BinaryHeap,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags, fstatfs, openat,
        openat2, statat,
    },
    io::{Errno, Result},
};

use super::{
    pattern::{Pattern, State},
    place::{Path, open_at},
};

/// How long a walk may take.
const TIME: Duration = Duration::from_secs(20);
/// Names looked at, in all.
const MAX_SEEN: usize = 1_000_000;
/// Names kept of one directory: those that come first.
const MAX_NAMES: usize = 50_000;
/// Bytes of names that wait to be visited, about.
const MAX_WAITING: usize = 16 << 20;

/// A way through a tree.
#[derive(Debug)]
pub(super) struct Walk {
    root: OwnedFd,
    /// What paths are told with.
    base: Vec<u8>,
    pattern: Pattern,
    /// The next one last.
    waiting: Vec<Waiting>,
    bytes: usize,
    seen: usize,
    deadline: Instant,
    /// Something may have been left out.
    pub(super) truncated: bool,
    /// Directories that could not be read.
    pub(super) unreadable: u64,
}

/// Something the pattern names.
#[derive(Debug)]
pub(super) struct Found {
    /// Relative to where the walk began.
    pub(super) path: Vec<u8>,
    /// As far as the directory told; otherwise unknown.
    pub(super) kind: FileType,
}

pub(super) enum Next {
    Found(Found),
    /// Others should have their turn.
    Later,
    End,
}

#[derive(Debug)]
struct Waiting {
    path: Vec<u8>,
    kind: FileType,
    matched: bool,
    /// What to look for below it.
    below: Option<State>,
}

/// Ordered by name, which no two in a directory share.
struct Name(Vec<u8>, FileType, bool, Option<State>);

impl Walk {
    /// Begins at a directory; a link to one is followed here, and nowhere else.
    pub(super) fn new(path: &Path, pattern: Pattern) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let root = open_at(CWD, path.as_str(), flags, Mode::empty())?;
        let first = Waiting {
            path: Vec::new(),
            kind: FileType::Directory,
            matched: false,
            below: Some(pattern.start()),
        };
        Ok(Self {
            root,
            base: path.as_str().trim_end_matches('/').into(),
            pattern,
            waiting: vec![first],
            bytes: 0,
            seen: 0,
            deadline: Instant::now() + TIME,
            truncated: false,
            unreadable: 0,
        })
    }

    /// Where the walk began.
    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// The path of something found, from the root.
    pub(super) fn told(&self, path: &[u8]) -> Vec<u8> {
        [&self.base, path].join(&b'/')
    }

    /// Whether it has taken as long as it may; whoever reads files meanwhile asks, too.
    pub(super) fn late(&mut self) -> bool {
        let late = Instant::now() > self.deadline;
        self.truncated |= late;
        late
    }

    /// The next thing found. `effort` is what may still be done before others have their turn.
    pub(super) fn next(&mut self, effort: &mut usize) -> Next {
        loop {
            if self.late() {
                return Next::End;
            }
            let Some(mut next) = self.waiting.pop() else { return Next::End };
            if *effort == 0 {
                self.waiting.push(next);
                return Next::Later;
            }
            if next.matched {
                next.matched = false;
                let found = Found { path: next.path.clone(), kind: next.kind };
                if next.below.is_some() {
                    self.waiting.push(next);
                } else {
                    self.bytes -= weight(&next.path);
                }
                *effort -= 1;
                return Next::Found(found);
            }
            self.bytes -= if next.path.is_empty() { 0 } else { weight(&next.path) };
            if let Some(state) = next.below {
                let seen = self.seen;
                if self.read(&next.path, &state).is_err() {
                    self.unreadable += 1;
                }
                *effort = effort.saturating_sub(1 + (self.seen - seen) / 4);
            }
        }
    }

    /// Reads a directory and keeps what is worth a visit.
    fn read(&mut self, path: &[u8], state: &State) -> Result<()> {
        let directory = if path.is_empty() {
            openat(&self.root, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?
        } else {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
            match open_below(&self.root, path, flags) {
                // Gone, or no directory any more.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
                Err(Errno::NAMETOOLONG) => {
                    self.truncated = true;
                    return Ok(());
                }
                opened => opened?,
            }
        };
        if !path.is_empty() && is_of_kernel(&directory) {
            return Ok(());
        }
        let mut first = BinaryHeap::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_SEEN {
                self.truncated = true;
                break;
            }
            let (matched, below) = self.pattern.step(state, name);
            if !matched && below.is_none() {
                continue;
            }
            let kind = kind(&directory, &entry);
            let below = below.filter(|_| kind == FileType::Directory);
            if matched || below.is_some() {
                first.push(Name(name.to_vec(), kind, matched, below));
                if first.len() > MAX_NAMES {
                    first.pop();
                    self.truncated = true;
                }
            }
        }
        self.keep(path, first.into_sorted_vec());
        Ok(())
    }

    fn keep(&mut self, path: &[u8], names: Vec<Name>) {
        let from = self.waiting.len();
        for Name(name, kind, matched, below) in names {
            let path = if path.is_empty() { name } else { [path, &name[..]].join(&b'/') };
            if self.bytes + weight(&path) > MAX_WAITING {
                self.truncated = true;
                break;
            }
            self.bytes += weight(&path);
            self.waiting.push(Waiting { path, kind, matched, below });
        }
        self.waiting[from..].reverse();
    }
}

/// What a waiting path costs.
fn weight(path: &[u8]) -> usize {
    path.len() + 128
}

/// Opens something below a directory; a link on the way, or at its end, is refused.
pub(super) fn open_below(root: impl AsFd, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(&root, path, flags, Mode::empty(), how) {
        Err(Errno::NOSYS) => openat(&root, path, flags, Mode::empty()),
        result => result,
    }
}

/// What an entry is; some file systems do not say when they are read.
pub(super) fn kind(directory: &OwnedFd, entry: &DirEntry) -> FileType {
    match entry.file_type() {
        FileType::Unknown => statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
        kind => kind,
    }
}

/// Whether its files are the kernel's answers rather than anybody's files: those who want them
/// begin there.
fn is_of_kernel(directory: &OwnedFd) -> bool {
    // proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, bpf, devpts.
    const KINDS: [u64; 9] = [
        0x9fa0,
        0x6265_6572,
        0x0027_e0eb,
        0x6367_7270,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0xcafe_4a11,
        0x1cd1,
    ];
    fstatfs(directory).is_ok_and(|found| {
        u64::try_from(found.f_type).is_ok_and(|kind| KINDS.contains(&(kind & 0xffff_ffff)))
    })
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Name {}
