//! From a tree to an archive.

use std::{
    collections::HashMap,
    ffi::CStr,
    os::fd::{AsFd as _, OwnedFd},
};

use rustix::{
    fs::{
        AtFlags, FileType, FsWord, Mode, OFlags, Stat, fstat, fstatfs, openat, readlinkat, statat,
    },
    io::{Errno, read},
};

use crate::{
    failure::{Cause, Failed, Result},
    header::{BLOCK, DIRECTORY, FILE, GLOBAL, HARD_LINK, Outgoing, SYMLINK, extension, padding},
    left_out::{Contents, Why},
    name::MAX_NAME,
    pax,
    walk::{Step, Walk, open_directory},
};

/// Steps of one call.
const TURN: usize = 1000;
/// Bytes of holes, which cost nothing to make, that are sent as zeros.
const HOLES: u64 = 1 << 30;
/// Bytes of names that are remembered for hard links; past that each name is a file.
const LINKS: usize = 4 << 20;

/// Packs a directory, or one file, piece by piece.
///
/// - Files, directories and links, as links, with permission bits and times; names are relative to
///   the directory. Nobody owns them. No link is followed.
/// - Pipes, sockets, devices, what may not be read, the kernel's own file systems and files of
///   more than a gibibyte of holes are left out, which the archive tells at its end.
/// - A file that grows is cut to the size it had; one that shrinks is filled with zeros, and told.
/// - Memory does not grow with the number of files.
#[derive(Debug)]
pub struct Packer {
    walk: Option<Walk>,
    file: Option<Reading>,
    contents: Contents,
    /// The first name of each file that has several.
    links: HashMap<(u64, u64), Vec<u8>>,
    /// Bytes of names that may still be remembered.
    names: usize,
    holes: u64,
    ended: bool,
    /// What has to be sent before anything else.
    ready: Vec<u8>,
}

#[derive(Debug)]
struct Reading {
    path: Vec<u8>,
    file: OwnedFd,
    left: u64,
    size: u64,
    /// It ended too early.
    short: bool,
}

impl Packer {
    /// What a directory holds, and what the directory itself is like.
    pub fn directory(root: OwnedFd) -> Result<Self> {
        let stat = fstat(&root)?;
        if of_kernel(&root)? {
            return Err(Failed::new(Cause::Refused("these are files of the kernel")));
        }
        let mut packer = Self::empty();
        packer.head(DIRECTORY, b"./", b"", &stat, 0);
        packer.walk = Some(Walk::new(root)?);
        Ok(packer)
    }

    /// One regular file, open for reading.
    pub fn file(file: OwnedFd, name: &[u8]) -> Result<Self> {
        let stat = fstat(&file)?;
        let mut packer = Self::empty();
        packer.open(name.to_vec(), file, &stat);
        Ok(packer)
    }

    fn empty() -> Self {
        Self {
            walk: None,
            file: None,
            contents: Contents::default(),
            links: HashMap::new(),
            names: LINKS,
            holes: HOLES,
            ended: false,
            ready: Vec::new(),
        }
    }

    /// What is packed so far, and what could not be.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Adds about `most` bytes to `to`, or fewer if it takes long to find any; false if there is no
    /// more. An error is final, and what came before it is no archive.
    pub fn read(&mut self, to: &mut Vec<u8>, most: usize) -> Result<bool> {
        let end = to.len() + most.max(BLOCK);
        for _ in 0..TURN {
            to.append(&mut self.ready);
            if to.len() >= end {
                return Ok(true);
            }
            if self.file.is_some() {
                self.content(to, end - to.len())?;
            } else if self.walk.is_some() {
                self.step()?;
            } else if self.ended {
                return Ok(false);
            } else {
                self.end();
            }
        }
        Ok(true)
    }

    fn end(&mut self) {
        if let Some(comment) = self.contents.left_out.comment() {
            let mut records = Vec::new();
            pax::record(&mut records, "comment", comment.as_bytes());
            extension(&mut self.ready, GLOBAL, &records);
        }
        self.ready.resize(self.ready.len() + 2 * BLOCK, 0);
        self.ended = true;
    }

    /// The next bytes of the file at hand.
    fn content(&mut self, to: &mut Vec<u8>, most: usize) -> Result<()> {
        let Some(reading) = &mut self.file else { return Ok(()) };
        let most = usize::try_from(reading.left).unwrap_or(most).min(most);
        let start = to.len();
        to.resize(start + most, 0);
        if !reading.short && most > 0 {
            let count = match read(&reading.file, &mut to[start..]) {
                Ok(count) => count,
                Err(Errno::INTR) => {
                    to.truncate(start);
                    return Ok(());
                }
                Err(error) => return Err(Failed::from(error).at(&reading.path)),
            };
            if count == 0 {
                reading.short = true;
                self.contents.left_out.add(&reading.path, Why::Shrank);
            }
            to.truncate(start + count);
        }
        reading.left -= (to.len() - start) as u64;
        if reading.left == 0 {
            to.resize(to.len() + padding(reading.size), 0);
            self.file = None;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        let Some(walk) = &mut self.walk else { return Ok(()) };
        match walk.step() {
            Ok(Step::Name(name)) => {
                let path = walk.path(name.to_bytes());
                self.name(&name, path.clone()).map_err(|failed| failed.at(&path))?;
            }
            Ok(Step::Up) => {}
            Ok(Step::Done) => self.walk = None,
            Err(error) => return Err(Failed::from(error).at(&walk.path(b""))),
        }
        Ok(())
    }

    /// Packs what a name in the deepest directory is.
    fn name(&mut self, name: &CStr, path: Vec<u8>) -> Result<()> {
        let Some(walk) = &mut self.walk else { return Ok(()) };
        let directory = walk.directory()?;
        let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            // It is gone: there is nothing to pack.
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.contents.left_out.add(&path, Why::NotAllowed);
                return Ok(());
            }
            result => result?,
        };
        if path.len() >= MAX_NAME {
            self.contents.left_out.add(&path, Why::TooDeep);
            return Ok(());
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.enter(name, &path, &stat)?,
            FileType::RegularFile => {
                let flags = OFlags::RDONLY
                    | OFlags::NOFOLLOW
                    | OFlags::NONBLOCK
                    | OFlags::NOCTTY
                    | OFlags::CLOEXEC;
                let file = openat(directory, name, flags, Mode::empty());
                if let Some(file) = self.opened(&path, file)? {
                    let stat = fstat(&file)?;
                    self.open(path, file, &stat);
                }
            }
            FileType::Symlink => match readlinkat(directory, name, Vec::new()) {
                Ok(target) => self.head(SYMLINK, &path, target.to_bytes(), &stat, 0),
                Err(Errno::NOENT | Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            },
            FileType::Fifo => self.contents.left_out.add(&path, Why::Pipe),
            FileType::Socket => self.contents.left_out.add(&path, Why::Socket),
            _ => self.contents.left_out.add(&path, Why::Device),
        }
        Ok(())
    }

    fn enter(&mut self, name: &CStr, path: &[u8], stat: &Stat) -> Result<()> {
        let Some(walk) = &mut self.walk else { return Ok(()) };
        let device = walk.device();
        let opened = open_directory(walk.directory()?, name);
        let slashed = [path, b"/"].concat();
        let Some(directory) = self.opened(path, opened)? else {
            // What is in it cannot be told, but that it is there can.
            self.head(DIRECTORY, &slashed, b"", stat, 0);
            return Ok(());
        };
        let stat = fstat(&directory)?;
        self.head(DIRECTORY, &slashed, b"", &stat, 0);
        if stat.st_dev != device && of_kernel(&directory)? {
            self.contents.left_out.add(path, Why::KernelFiles);
            return Ok(());
        }
        if let Some(walk) = &mut self.walk {
            walk.enter(name.to_bytes(), directory)?;
        }
        Ok(())
    }

    /// What was opened; none if it could not be, for a reason that is told.
    fn opened(&mut self, path: &[u8], file: Result<OwnedFd, Errno>) -> Result<Option<OwnedFd>> {
        match file {
            Ok(file) => Ok(Some(file)),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.contents.left_out.add(path, Why::NotAllowed);
                Ok(None)
            }
            Err(Errno::AGAIN | Errno::BUSY | Errno::TXTBSY) => {
                self.contents.left_out.add(path, Why::Leased);
                Ok(None)
            }
            // Something else by now: as if it had never been there.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a file, if it is one still.
    fn open(&mut self, path: Vec<u8>, file: OwnedFd, stat: &Stat) {
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return;
        }
        if let Some(first) = self.linked(&path, stat) {
            return self.head(HARD_LINK, &path, &first, stat, 0);
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let kept = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
        let Some(holes) = self.holes.checked_sub(size.saturating_sub(kept)) else {
            return self.contents.left_out.add(&path, Why::Sparse);
        };
        self.holes = holes;
        self.head(FILE, &path, b"", stat, size);
        if size > 0 {
            self.file = Some(Reading { path, file, left: size, size, short: false });
        }
    }

    /// The name under which this file was packed before; else remembers this one.
    fn linked(&mut self, path: &[u8], stat: &Stat) -> Option<Vec<u8>> {
        if stat.st_nlink < 2 {
            return None;
        }
        let identity = (stat.st_dev, stat.st_ino);
        let first = self.links.get(&identity).cloned();
        if first.is_none()
            && let Some(names) = self.names.checked_sub(path.len() + 64)
        {
            self.names = names;
            self.links.insert(identity, path.to_vec());
        }
        first
    }

    fn head(&mut self, kind: u8, name: &[u8], link: &[u8], stat: &Stat, size: u64) {
        let mode = stat.st_mode & 0o777;
        let modified = stat.st_mtime;
        Outgoing { kind, name, link, mode, size, modified }.write(&mut self.ready);
        self.contents.bytes += size;
        self.contents.entries += u64::from(name != b"./");
    }
}

/// Whether a directory is on a file system the kernel makes up as it is read.
fn of_kernel(directory: &OwnedFd) -> Result<bool, Errno> {
    /// proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, devpts, bpf, `binfmt_misc`,
    /// configfs, mqueue and pstore.
    const MADE_UP: [FsWord; 13] = [
        0x9fa0,
        0x6265_6572,
        0x0027_e0eb,
        0x6367_7270,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0x1cd1,
        0xcafe_4a11,
        0x4249_4e4d,
        0x6265_6570,
        0x1980_0202,
        0x6165_676c,
    ];
    Ok(MADE_UP.contains(&fstatfs(directory.as_fd())?.f_type))
}
