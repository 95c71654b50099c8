//! From a path to the directory and the name in it, as the guest would find them.
//!
//! Links of `/proc` that lead straight to an open file are never followed: they would be the
//! agent's own.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, OwnedFd},
};

use atoll_agent_protocol::message::{Entry, Failure};
use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, mkdirat, openat, openat2,
        readlinkat, statat,
    },
    io::{Errno, Result},
};

use crate::failure::invalid;

const MAX_PATH: usize = 16 << 10;
/// Links followed before it must be a circle; the kernel's number.
const MAX_LINKS: usize = 40;

/// A name in a directory. What it names may not be there.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) directory: OwnedFd,
    pub(crate) name: CString,
}

/// A path from the root, without empty and `.` parts.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    full: String,
    asked: String,
}

impl Path {
    /// Checks a host's path; one that is relative begins at `home`.
    pub(crate) fn new(home: &str, path: &str) -> std::result::Result<Self, Failure> {
        if path.is_empty() {
            return Err(invalid("a path is empty"));
        }
        if path.contains('\0') {
            return Err(invalid("a path holds a NUL"));
        }
        if path.len() > MAX_PATH {
            return Err(invalid("a path is too long"));
        }
        let start = if path.starts_with('/') { "" } else { home };
        Ok(Self { full: join(start, path), asked: path.to_owned() })
    }

    pub(crate) fn as_str(&self) -> &str {
        if self.full.is_empty() { "/" } else { &self.full }
    }

    /// As the host wrote it: what messages call it, since home may be the host's own secret.
    pub(crate) fn asked(&self) -> &str {
        &self.asked
    }

    /// The directory and the last part, which is empty for the root.
    fn split(&self) -> (&str, &str) {
        let (parent, name) = self.full.rsplit_once('/').unwrap_or(("", ""));
        (if parent.is_empty() { "/" } else { parent }, name)
    }

    /// The last part, as people call it.
    pub(crate) fn name(&self) -> &str {
        let (_, name) = self.split();
        if name.is_empty() { "/" } else { name }
    }

    /// Where it is; the last part is not followed. One that has no name of its own is not here.
    pub(crate) fn place(&self) -> Result<Place> {
        let (parent, name) = self.split();
        if name.is_empty() || name == ".." {
            return Err(Errno::INVAL);
        }
        Ok(Place { directory: open_directory(parent)?, name: c_string(name)? })
    }

    /// What it names; a link is told as a link.
    pub(crate) fn stat(&self) -> Result<(Stat, Option<Vec<u8>>)> {
        let (parent, name) = self.split();
        let directory = open_directory(parent)?;
        let name = c_string(if name.is_empty() { "." } else { name })?;
        describe(&directory, &name)
    }

    /// Makes the directories it lies in, as far as they are missing.
    pub(crate) fn make_parents(&self) -> Result<()> {
        let (parent, _) = self.split();
        make_directories(parent).map(drop)
    }

    /// Where a file written there would be: links are followed to their end.
    pub(crate) fn resolve(&self) -> Result<Place> {
        let mut place = self.place()?;
        for _ in 0..MAX_LINKS {
            let target = match readlinkat(&place.directory, &place.name, Vec::new()) {
                Ok(target) => target,
                Err(Errno::INVAL | Errno::NOENT) => return Ok(place),
                Err(error) => return Err(error),
            };
            let target = target.to_bytes();
            let (parent, name) = match target.iter().rposition(|byte| *byte == b'/') {
                Some(0) => (&b"/"[..], &target[1..]),
                Some(slash) => (&target[..slash], &target[slash + 1..]),
                None => (&b"."[..], target),
            };
            if matches!(name, b"" | b"." | b"..") {
                return Err(Errno::ISDIR);
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let directory = open_at(&place.directory, parent, flags, Mode::empty())?;
            place = Place { directory, name: CString::new(name).map_err(|_| Errno::INVAL)? };
        }
        Err(Errno::LOOP)
    }
}

/// Makes a directory and those it needs, and opens it.
pub(crate) fn make_directories(path: &str) -> Result<OwnedFd> {
    match open_directory(path) {
        Err(Errno::NOENT) => {}
        result => return result,
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut directory = open_directory("/")?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        directory = match open_at(&directory, part, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                match mkdirat(&directory, part, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
                open_at(&directory, part, flags, Mode::empty())?
            }
            result => result?,
        };
    }
    Ok(directory)
}

pub(crate) fn open_directory(path: &str) -> Result<OwnedFd> {
    open_at(CWD, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
}

/// Opens as the guest would, except through the agent's own descriptors.
pub(crate) fn open_at(
    directory: impl AsFd,
    path: impl rustix::path::Arg + Copy,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    match openat2(&directory, path, flags, mode, ResolveFlags::NO_MAGICLINKS) {
        // Kernels that know no such call have no `/proc` of the usual kind either.
        Err(Errno::NOSYS) => openat(&directory, path, flags, mode),
        result => result,
    }
}

/// What a name in a directory is, and where it points if it is a link.
pub(crate) fn describe(directory: impl AsFd, name: &CStr) -> Result<(Stat, Option<Vec<u8>>)> {
    let stat = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let target = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => readlinkat(&directory, name, Vec::new()).ok(),
        _ => None,
    };
    Ok((stat, target.map(CString::into_bytes)))
}

/// The message for one file.
pub(crate) fn entry(name: &[u8], path: Vec<u8>, stat: &Stat, target: Option<Vec<u8>>) -> Entry {
    let nanoseconds = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
    let clamped = nanoseconds.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    Entry {
        name: name.to_vec(),
        path,
        mode: stat.st_mode,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified_ns: i64::try_from(clamped).unwrap_or(0),
        target,
    }
}

fn c_string(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Errno::INVAL)
}

fn join(start: &str, path: &str) -> String {
    let parts = start.split('/').chain(path.split('/'));
    let mut joined = String::new();
    for part in parts.filter(|part| !matches!(*part, "" | ".")) {
        joined.push('/');
        joined.push_str(part);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(path: &str) -> (String, String) {
        let path = Path::new("/home/user", path).unwrap();
        let (parent, name) = path.split();
        (parent.to_owned(), name.to_owned())
    }

    #[test]
    fn paths_begin_at_home_or_at_the_root() {
        let expect = |path, parent: &str, name: &str| {
            assert_eq!(split(path), (parent.to_owned(), name.to_owned()), "{path}");
        };
        expect("a", "/home/user", "a");
        expect("./a//b/", "/home/user/a", "b");
        expect(".", "/home", "user");
        expect("..", "/home/user", "..");
        expect("/", "/", "");
        expect("/a", "/", "a");
        expect("//a/./b", "/a", "b");
    }

    #[test]
    fn a_path_without_meaning_is_refused() {
        for path in ["", "a\0b", &"a/".repeat(MAX_PATH)] {
            assert!(Path::new("/home", path).is_err());
        }
    }
}
