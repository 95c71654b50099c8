//! A place for one daemon's data, that no other test program uses at the same time.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::PathBuf,
};

use rustix::fs::{FlockOperation, flock};

/// Daemons that may run side by side; one more waits.
const SLOTS: usize = 6;

/// Data, as long as this is held.
#[derive(Debug)]
pub(crate) struct Slot {
    directory: PathBuf,
    _lock: File,
}

impl Slot {
    pub(crate) fn take() -> io::Result<Self> {
        let all: Vec<_> = (0..SLOTS).map(open).collect::<io::Result<_>>()?;
        let mut waiting = None;
        for (directory, lock) in all {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { directory, _lock: lock }),
                Err(rustix::io::Errno::WOULDBLOCK) => waiting = waiting.or(Some((directory, lock))),
                Err(error) => return Err(error.into()),
            }
        }
        let (directory, lock) = waiting.ok_or(io::ErrorKind::NotFound)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Self { directory, _lock: lock })
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.directory.join("dockerd.log")
    }
}

fn open(number: usize) -> io::Result<(PathBuf, File)> {
    let directory = cache().join("docker").join(number.to_string());
    fs::create_dir_all(directory.join("data"))?;
    let lock = OpenOptions::new().create(true).append(true).open(directory.join("lock"))?;
    Ok((directory, lock))
}

/// Where tests keep what takes long to make.
#[expect(clippy::disallowed_methods, reason = "a test's own place, as scripts/setup has it")]
pub(crate) fn cache() -> PathBuf {
    PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into())).join(".cache/atoll")
}
