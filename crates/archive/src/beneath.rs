//! Directories below a destination, reached part by part and never through a link.
//!
//! The kernel is asked for that in so many words where it can be (`openat2`); since each step is a
//! single name, refusing links at the last part says the same where it cannot.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, mkdirat, openat, openat2},
    io::{Errno, dup},
};

use crate::{
    failure::{Cause, Failed, Result},
    name::{split, within},
};

/// Where an archive goes.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
    /// Modes of directories that no entry tells of.
    plain: u32,
    /// The directory used last: the next entry is mostly in it, or below.
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl Beneath {
    pub(crate) fn new(root: OwnedFd, plain: u32) -> Self {
        Self { root, plain, last: None }
    }

    /// The directory a path lies in, and the path's last part. Missing directories are made.
    pub(crate) fn parent<'a>(&mut self, path: &'a [u8]) -> Result<(OwnedFd, &'a [u8])> {
        let (parent, name) = split(path);
        Ok((self.directory(parent, true)?, name))
    }

    /// The same of something that must be there.
    pub(crate) fn parent_of_existing<'a>(&mut self, path: &'a [u8]) -> Result<(OwnedFd, &'a [u8])> {
        let (parent, name) = split(path);
        Ok((self.directory(parent, false)?, name))
    }

    fn directory(&mut self, path: &[u8], make: bool) -> Result<OwnedFd> {
        let (mut at, mut rest) = match &self.last {
            Some((last, fd)) if within(last, path) => {
                (dup(fd)?, path[last.len()..].strip_prefix(b"/").unwrap_or(&path[last.len()..]))
            }
            _ => (dup(&self.root)?, path),
        };
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let part = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            let way = &path[..path.len() - rest.len()];
            at = self.step(at.as_fd(), part, make).map_err(|failed| failed.at(way))?;
        }
        self.last = Some((path.to_vec(), dup(&at)?));
        Ok(at)
    }

    fn step(&self, at: BorrowedFd<'_>, part: &[u8], make: bool) -> Result<OwnedFd> {
        match enter(at, part, OFlags::PATH) {
            Err(Errno::NOENT) if make => {
                match mkdirat(at, part, Mode::from_raw_mode(0o700)) {
                    Ok(()) => {
                        let new = enter(at, part, OFlags::RDONLY)?;
                        rustix::fs::fchmod(&new, Mode::from_raw_mode(self.plain))?;
                    }
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                Ok(enter(at, part, OFlags::PATH)?)
            }
            Err(Errno::LOOP | Errno::NOTDIR) => {
                Err(Failed::new(Cause::Refused("not a directory; links are not written through")))
            }
            result => Ok(result?),
        }
    }
}

/// Opens one directory in another. A link is none.
pub(crate) fn enter(at: impl AsFd, name: &[u8], how: OFlags) -> Result<OwnedFd, Errno> {
    debug_assert!(!name.contains(&b'/') && !matches!(name, b"" | b".." | b"."));
    let at = at.as_fd();
    let flags = how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(at, name, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => openat(at, name, flags, Mode::empty()),
        result => result,
    }
}
