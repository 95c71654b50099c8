//! Goes through a tree by descriptors, never by path, and follows no link.
//!
//! Only the deepest few directories are kept open; the others are found again through `..`, must
//! be the same, and are read on from where they were left.

use std::{ffi::CString, os::fd::OwnedFd};

use rustix::{
    fs::{Dir, Mode, OFlags, Stat, fstat, openat},
    io::Errno,
};

/// Directories kept open.
const OPEN: usize = 32;
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Where a walk is.
#[derive(Debug)]
pub(crate) struct Walk {
    levels: Vec<Level>,
    /// From the walk's root to the deepest directory, ending in a slash unless it is the root.
    path: Vec<u8>,
}

#[derive(Debug)]
struct Level {
    identity: (u64, u64),
    /// None if it was closed to make room for deeper ones.
    open: Option<Dir>,
    /// Where in the directory to read on.
    offset: i64,
    /// How much of the walk's path leads to it.
    path: usize,
}

/// What a walk comes to next.
#[derive(Debug)]
pub(crate) enum Step {
    /// A name in the deepest directory.
    Name(CString),
    /// The deepest directory is done.
    Up,
    Done,
}

impl Walk {
    pub(crate) fn new(root: OwnedFd) -> Result<Self, Errno> {
        let level = Level::new(root, 0)?;
        Ok(Self { levels: vec![level], path: Vec::new() })
    }

    pub(crate) fn step(&mut self) -> Result<Step, Errno> {
        let Some(level) = self.levels.last_mut() else { return Ok(Step::Done) };
        let dir = level.open.as_mut().ok_or(Errno::STALE)?;
        loop {
            let Some(entry) = dir.read() else {
                self.ascend()?;
                return Ok(Step::Up);
            };
            let entry = entry?;
            level.offset = entry.offset();
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                return Ok(Step::Name(entry.file_name().to_owned()));
            }
        }
    }

    /// The deepest directory.
    pub(crate) fn directory(&self) -> Result<std::os::fd::BorrowedFd<'_>, Errno> {
        let dir = self.levels.last().and_then(|level| level.open.as_ref()).ok_or(Errno::STALE)?;
        dir.fd()
    }

    /// A name's path from the walk's root.
    pub(crate) fn path(&self, name: &[u8]) -> Vec<u8> {
        [&self.path, name].concat()
    }

    /// What file system the deepest directory is on.
    pub(crate) fn device(&self) -> u64 {
        self.levels.last().map_or(0, |level| level.identity.0)
    }

    /// Goes on in a directory of the deepest one.
    pub(crate) fn enter(&mut self, name: &[u8], directory: OwnedFd) -> Result<(), Errno> {
        let path = self.path.len() + name.len() + 1;
        self.levels.push(Level::new(directory, path)?);
        self.path.extend_from_slice(name);
        self.path.push(b'/');
        if let Some(above) = self.levels.len().checked_sub(OPEN + 1) {
            self.levels[above].open = None;
        }
        Ok(())
    }

    fn ascend(&mut self) -> Result<(), Errno> {
        let Some(done) = self.levels.pop() else { return Ok(()) };
        let Some(above) = self.levels.last_mut() else { return Ok(()) };
        self.path.truncate(above.path);
        if above.open.is_some() {
            return Ok(());
        }
        let below = done.open.as_ref().ok_or(Errno::STALE)?;
        let directory = openat(below.fd()?, "..", DIRECTORY, Mode::empty())?;
        if identity(&fstat(&directory)?) != above.identity {
            // Somebody moved what we were in: there is no way back.
            return Err(Errno::STALE);
        }
        let mut dir = Dir::new(directory)?;
        dir.seek(above.offset)?;
        above.open = Some(dir);
        Ok(())
    }
}

impl Level {
    fn new(directory: OwnedFd, path: usize) -> Result<Self, Errno> {
        let identity = identity(&fstat(&directory)?);
        Ok(Self { identity, open: Some(Dir::new(directory)?), offset: 0, path })
    }
}

/// Opens a directory of another.
pub(crate) fn open_directory(
    parent: impl std::os::fd::AsFd,
    name: &std::ffi::CStr,
) -> Result<OwnedFd, Errno> {
    openat(parent, name, DIRECTORY, Mode::empty())
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}
