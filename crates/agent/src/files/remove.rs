//! Removing a directory with all it holds, however deep.
//!
//! Goes down and up by descriptors, never by path, and never follows a link. Only the deepest few
//! directories are kept open; the others are found again through `..` and must be the same.

use std::{
    ffi::CString,
    os::fd::{AsFd, OwnedFd},
};

use atoll_agent_protocol::message::Failure;
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, chmodat, fstat, openat, statat, unlinkat},
    io::Errno,
};

use super::{
    Files,
    place::{Place, open_directory},
};
use crate::failure::{invalid, of_file};

/// Directories kept open.
const OPEN: usize = 32;
/// Times a directory is read again because something is in it still.
const PATIENCE: u8 = 3;
/// Names removed before others have their turn.
const TURN: usize = 1000;

/// Removes a file, a link itself, or a directory with all it holds. The home and what it lies in
/// stay, whatever they are called: they could only be emptied.
pub(super) async fn remove(files: &Files, path: &str) -> Result<(), Failure> {
    if matches!(path.trim_end_matches('/').rsplit('/').next(), Some("" | "." | "..")) {
        return Err(invalid("a path to remove ends in a name, not in `.` or `..`"));
    }
    let (place, home) = (files.path(path)?, files.home.clone());
    let what = place.asked().to_owned();
    let begin = move || {
        let failed = |cause: Errno| of_file(place.asked(), &cause.into());
        let found = place.place().map_err(failed)?;
        if holds_home(&found, &home).map_err(failed)? {
            return Err(invalid("the home directory and those it lies in cannot be removed"));
        }
        Removal::begin(found).map_err(failed)
    };
    let Some(mut removal) = files.pool.run(begin).await?? else { return Ok(()) };
    let failed = |cause: Errno| of_file(&what, &cause.into());
    loop {
        let turn = move || {
            let result = removal.advance();
            (removal, result)
        };
        let (back, result) = files.pool.run(turn).await?;
        removal = back;
        if result.map_err(failed)? {
            return Ok(());
        }
    }
}

/// Whether it is the home or a directory that lies above it.
fn holds_home(place: &Place, home: &str) -> Result<bool, Errno> {
    let found = statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW)?;
    let Ok(mut above) = open_directory(home) else { return Ok(false) };
    let mut here = identity(&fstat(&above)?);
    loop {
        if here == identity(&found) {
            return Ok(true);
        }
        above = openat(&above, "..", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let below = here;
        here = identity(&fstat(&above)?);
        // The root is its own parent.
        if here == below {
            return Ok(false);
        }
    }
}

/// A directory that is being emptied.
struct Level {
    name: CString,
    /// Device and inode: what it must be when it is come back to.
    identity: (u64, u64),
    /// Closed while far above.
    open: Option<Dir>,
    /// Times it was found to hold something after all.
    again: u8,
}

/// A tree on its way out.
struct Removal {
    /// Where its root is.
    directory: OwnedFd,
    /// From the root to the directory that is being emptied.
    levels: Vec<Level>,
}

impl Removal {
    /// Removes what is no directory at once, and says so by giving nothing.
    fn begin(place: Place) -> Result<Option<Self>, Errno> {
        let Place { directory, name } = place;
        let stat = statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            unlinkat(&directory, &name, AtFlags::empty())?;
            return Ok(None);
        }
        let level = enter(&directory, name)?;
        Ok(Some(Self { directory, levels: vec![level] }))
    }

    /// Goes on for a while; true when all is gone.
    fn advance(&mut self) -> Result<bool, Errno> {
        for _ in 0..TURN {
            let Some(level) = self.levels.last_mut() else { return Ok(true) };
            let Some(dir) = &mut level.open else { return Err(Errno::STALE) };
            match dir.read() {
                Some(entry) => {
                    let entry = entry?;
                    let name = entry.file_name();
                    if matches!(name.to_bytes(), b"." | b"..") {
                        continue;
                    }
                    let name = name.to_owned();
                    let directory = dir.fd()?;
                    match unlinkat(directory, &name, AtFlags::empty()) {
                        Ok(()) | Err(Errno::NOENT) => {}
                        // What a directory says to `unlink` differs between file systems.
                        Err(error @ (Errno::ISDIR | Errno::PERM | Errno::ACCESS)) => {
                            let stat = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                                return Err(error);
                            }
                            let level = enter(directory, name)?;
                            self.descend(level);
                        }
                        Err(error) => return Err(error),
                    }
                }
                None => self.ascend()?,
            }
        }
        Ok(self.levels.is_empty())
    }

    fn descend(&mut self, level: Level) {
        self.levels.push(level);
        if let Some(above) = self.levels.len().checked_sub(OPEN + 1) {
            self.levels[above].open = None;
        }
    }

    /// Removes the directory that is empty now, from the one above.
    fn ascend(&mut self) -> Result<(), Errno> {
        let Some(done) = self.levels.pop() else { return Ok(()) };
        let parent = match self.levels.last_mut() {
            Some(above) => above.reopen(&done)?.fd()?,
            None => self.directory.as_fd(),
        };
        match unlinkat(parent, &done.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // Somebody put something there meanwhile, or reading passed it over.
            Err(Errno::NOTEMPTY) if done.again < PATIENCE => {
                let again = done.again + 1;
                let level = Level { again, ..enter(parent, done.name)? };
                self.descend(level);
                Ok(())
            }
            Err(Errno::NOTEMPTY) => Err(Errno::BUSY),
            Err(error) => Err(error),
        }
    }
}

impl Level {
    /// The directory, opened again from the one `below` it if need be.
    fn reopen(&mut self, below: &Self) -> Result<&mut Dir, Errno> {
        if self.open.is_none() {
            let below = below.open.as_ref().ok_or(Errno::STALE)?;
            let directory = openat(below.fd()?, "..", DIRECTORY, Mode::empty())?;
            if identity(&fstat(&directory)?) != self.identity {
                return Err(Errno::STALE);
            }
            self.open = Some(Dir::new(directory)?);
        }
        self.open.as_mut().ok_or(Errno::STALE)
    }
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory to empty it, which its owner may allow itself.
fn enter(parent: impl AsFd, name: CString) -> Result<Level, Errno> {
    let fd = match openat(&parent, &name, DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            chmodat(&parent, &name, Mode::RWXU, AtFlags::empty())?;
            openat(&parent, &name, DIRECTORY, Mode::empty())?
        }
        result => result?,
    };
    let stat = fstat(&fd)?;
    if stat.st_mode & 0o700 != 0o700 {
        // Not ours to allow: then removing what is in it will tell.
        let _ = rustix::fs::fchmod(&fd, Mode::RWXU);
    }
    Ok(Level { name, identity: identity(&stat), open: Some(Dir::new(fd)?), again: 0 })
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}
