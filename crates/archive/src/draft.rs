//! Something that is made beside its place and moved there when it is whole.

use std::{
    os::fd::OwnedFd,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens,
        linkat, openat, renameat, statat, symlinkat, unlinkat, utimensat,
    },
    io::{Errno, write},
};

use crate::failure::{Cause, Failed, Result};

/// A file on its way. Dropped before it is whole, it is gone.
#[derive(Debug)]
pub(crate) struct Draft {
    directory: OwnedFd,
    /// Its own name, until it has its final one.
    own_name: Option<String>,
    name: Vec<u8>,
    file: OwnedFd,
    mode: u32,
    modified: i64,
}

impl Draft {
    pub(crate) fn new(directory: OwnedFd, name: &[u8], mode: u32, modified: i64) -> Result<Self> {
        replaceable(&directory, name)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let make = |draft: &str| openat(&directory, draft, flags, Mode::from_raw_mode(0o600));
        let (draft, file) = with_fresh_name(make)?;
        let name = name.to_vec();
        Ok(Self { own_name: Some(draft), directory, name, file, mode, modified })
    }

    pub(crate) fn write(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            match write(&self.file, data) {
                Ok(count) => data = &data[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    pub(crate) fn commit(mut self) -> Result<()> {
        fchmod(&self.file, Mode::from_raw_mode(self.mode))?;
        futimens(&self.file, &times(self.modified))?;
        if let Some(draft) = &self.own_name {
            renameat(&self.directory, draft.as_str(), &self.directory, self.name.as_slice())?;
        }
        self.own_name = None;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(draft) = self.own_name.take() {
            let _ = unlinkat(&self.directory, draft.as_str(), AtFlags::empty());
        }
    }
}

/// Puts a link in its place.
pub(crate) fn symlink(
    directory: &OwnedFd,
    name: &[u8],
    target: &[u8],
    modified: i64,
) -> Result<()> {
    replaceable(directory, name)?;
    let (draft, ()) = with_fresh_name(|draft| symlinkat(target, directory, draft))?;
    // Not every file system keeps a time for links.
    let nofollow = AtFlags::SYMLINK_NOFOLLOW;
    let _ = utimensat(directory, draft.as_str(), &times(modified), nofollow);
    place(directory, &draft, name)
}

/// Gives a regular file another name.
pub(crate) fn hard_link(from: (&OwnedFd, &[u8]), directory: &OwnedFd, name: &[u8]) -> Result<()> {
    let stat = statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Failed::new(Cause::Refused("a hard link to what is no regular file")));
    }
    replaceable(directory, name)?;
    let make = |draft: &str| linkat(from.0, from.1, directory, draft, AtFlags::empty());
    let (draft, ()) = with_fresh_name(make)?;
    place(directory, &draft, name)
}

/// Moves what is whole to its name.
fn place(directory: &OwnedFd, draft: &str, name: &[u8]) -> Result<()> {
    let placed = renameat(directory, draft, directory, name);
    // Two names of one file stay two when one is moved onto the other.
    let _ = unlinkat(directory, draft, AtFlags::empty());
    Ok(placed?)
}

/// Whether something may be put in the place of what is there: a file or a link.
fn replaceable(directory: &OwnedFd, name: &[u8]) -> Result<()> {
    let kind = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match kind {
        FileType::RegularFile | FileType::Symlink => Ok(()),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(Failed::new(Cause::Refused("what is there is no regular file"))),
    }
}

/// A time of last change, and the time of last use left alone.
pub(crate) fn times(modified: i64) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified, tv_nsec: 0 },
    }
}

/// Makes something under a name that nothing has.
fn with_fresh_name<T>(make: impl Fn(&str) -> Result<T, Errno>) -> Result<(String, T)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!(".atoll-{:x}-{:x}-{count:x}.part", now.as_secs(), now.subsec_nanos());
        match make(&name) {
            Ok(new) => return Ok((name, new)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
