//! From an archive to a tree.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{Mode, OFlags, fchmod, futimens, mkdirat},
    io::Errno,
};

use crate::{
    beneath::{Beneath, enter},
    draft::{Draft, hard_link, symlink, times},
    failure::{Cause, Failed, Result},
    left_out::Contents,
    name::within,
    read::{Entry, Event, Kind, Reader},
};

/// Modes of directories that no entry tells of.
const PLAIN: u32 = 0o755;

/// Unpacks an archive into a directory as it comes.
///
/// - Nothing is written outside the directory, and nothing through a link: a name that leads out,
///   or through a link, whether the archive brought it or it was there, is refused.
/// - A file or link replaces a file or link of its name in one step; a directory that is there
///   stays as it is, with its mode. Set-id bits are dropped; devices and pipes are refused.
/// - At a failure, and when dropped, what was whole stays and what was not is gone.
#[derive(Debug)]
pub struct Unpacker {
    reader: Reader,
    beneath: Beneath,
    root: OwnedFd,
    /// Permission bits that are not given.
    mask: u32,
    /// The root was made for this, so the archive says what it is like.
    fresh: bool,
    file: Option<(Vec<u8>, Draft)>,
    /// New directories that entries may still come for, each within the one before. They are
    /// writable until then.
    open: Vec<Entry>,
    done: Contents,
    failed: bool,
}

impl Unpacker {
    /// Unpacks into `root`, an open directory. `fresh`: it was made for this. New files and
    /// directories have none of the permission bits of `mask`.
    pub fn new(root: OwnedFd, fresh: bool, mask: u32) -> Result<Self> {
        let beneath = Beneath::new(rustix::io::dup(&root)?, PLAIN & !mask);
        Ok(Self {
            reader: Reader::default(),
            beneath,
            root,
            mask,
            fresh,
            file: None,
            open: Vec::new(),
            done: Contents::default(),
            failed: false,
        })
    }

    /// What is unpacked so far.
    pub fn done(&self) -> &Contents {
        &self.done
    }

    /// Takes the next bytes. After a failure there are no next.
    pub fn write(&mut self, mut data: &[u8]) -> Result<()> {
        let taken = self.take(&mut data);
        if taken.is_err() {
            self.give_up();
        }
        taken
    }

    /// Says that all has come. Fails if it was not all.
    pub fn finish(&mut self) -> Result<Contents> {
        if !self.reader.ended() {
            let failed = Failed::malformed("the archive ended before it was whole");
            let entry = self.file.as_ref().map(|(path, _)| path.clone());
            self.give_up();
            return Err(match entry {
                Some(entry) => failed.at(&entry),
                None => failed,
            });
        }
        self.leave(None)?;
        Ok(self.done.clone())
    }

    /// Removes what is not whole and leaves the rest as it should be.
    pub fn give_up(&mut self) {
        self.failed = true;
        self.file = None;
        let _ = self.leave(None);
    }

    fn take(&mut self, data: &mut &[u8]) -> Result<()> {
        if self.failed {
            return Err(Failed::malformed("the archive was given up"));
        }
        while let Some(event) = self.reader.next(data)? {
            match event {
                Event::Entry(entry) => {
                    let path = entry.path.clone();
                    self.entry(entry).map_err(|failed| failed.at(&path))?;
                }
                Event::Data(data) => {
                    if let Some((path, draft)) = &mut self.file {
                        draft.write(data).map_err(|failed| failed.at(path))?;
                        self.done.bytes += data.len() as u64;
                    }
                }
                Event::Whole => {
                    if let Some((path, draft)) = self.file.take() {
                        draft.commit().map_err(|failed| failed.at(&path))?;
                        self.done.entries += 1;
                    }
                }
                Event::LeftOut(left_out) => self.done.left_out = left_out,
            }
        }
        Ok(())
    }

    fn entry(&mut self, entry: Entry) -> Result<()> {
        self.leave(Some(&entry.path))?;
        let Entry { path, kind, mode, modified } = entry;
        if path.is_empty() {
            if self.fresh && self.open.is_empty() {
                self.open.push(Entry { path, kind, mode, modified });
            }
            return Ok(());
        }
        let (directory, name) = self.beneath.parent(&path)?;
        match kind {
            Kind::File => {
                let draft = Draft::new(directory, name, mode & !self.mask, modified)?;
                self.file = Some((path, draft));
                // Counted when it is whole.
                return Ok(());
            }
            Kind::Symlink { target } => symlink(&directory, name, &target, modified)?,
            Kind::HardLink { path: from } => {
                let (parent, from) = self.beneath.parent_of_existing(&from)?;
                hard_link((&parent, from), &directory, name)?;
            }
            Kind::Directory => {
                if make(&directory, name)? {
                    self.open.push(Entry { path, kind: Kind::Directory, mode, modified });
                }
            }
        }
        self.done.entries += 1;
        Ok(())
    }

    /// Gives the directories their modes that `next` is not in.
    fn leave(&mut self, next: Option<&[u8]>) -> Result<()> {
        while let Some(entry) =
            self.open.pop_if(|entry| next.is_none_or(|next| !within(&entry.path, next)))
        {
            self.settle(&entry).map_err(|failed| failed.at(&entry.path))?;
        }
        Ok(())
    }

    fn settle(&mut self, entry: &Entry) -> Result<()> {
        let mut opened = None;
        let directory = if entry.path.is_empty() {
            &self.root
        } else {
            let (parent, name) = self.beneath.parent_of_existing(&entry.path)?;
            opened.insert(enter(parent, name, OFlags::RDONLY)?)
        };
        futimens(directory, &times(entry.modified))?;
        fchmod(directory, Mode::from_raw_mode(entry.mode & !self.mask))?;
        Ok(())
    }
}

impl Drop for Unpacker {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Makes a directory; false if there is one.
fn make(parent: &OwnedFd, name: &[u8]) -> Result<bool> {
    match mkdirat(parent, name, Mode::from_raw_mode(0o700)) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => match enter(parent, name, OFlags::PATH) {
            Ok(_) => Ok(false),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                Err(Failed::new(Cause::Refused("what is there is no directory")))
            }
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
