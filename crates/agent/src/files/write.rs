//! Writing files: beside the old one, then in its place.

use std::{
    ffi::CString,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use atoll_agent_protocol::{
    message::{Failure, Upload, upload::Part},
    mux::Stream,
};
use rustix::{
    fs::{Access, AtFlags, Mode, OFlags, accessat, fchmod, renameat, statat, unlinkat},
    io::{Errno, read, write},
};

use super::{
    Files,
    drafts::{self, PREFIX},
    place::{Path, Place, open_at},
    pool::Pool,
    read::{open_regular, regular},
};
use crate::failure::{invalid, of_file, shown};

/// What a new file may be used for by whom.
const MODE: u32 = 0o644;
/// What is copied at once.
const PIECE: usize = 4 << 20;
const BUFFER: usize = 64 << 10;

/// Takes a file from a host. It is not there before the host has said that it is whole.
pub(super) async fn receive(files: &Files, path: &str, stream: &Stream) -> Result<(), Failure> {
    let mut draft = Draft::begin(files, path, None).await?;
    loop {
        let Ok(Some(Upload { part: Some(part) })) = stream.recv().await else {
            let broken = |_: &mut Draft| Err(invalid("the upload ended before it was whole"));
            return draft.then(broken).await.map(|(_, ())| ());
        };
        match part {
            Part::Chunk(data) => (draft, ()) = draft.then(move |draft| draft.write(&data)).await?,
            Part::End(_) => return draft.then(Draft::commit).await.map(drop),
        }
    }
}

/// Copies a regular file with its permission bits.
pub(super) async fn copy(files: &Files, from: &str, to: &str) -> Result<(), Failure> {
    let source = files.path(from)?;
    files.path(to)?;
    let (mut source, stat) = files.pool.run(move || open_regular(&source)).await??;
    let mut draft = Draft::begin(files, to, Some(stat.st_mode & 0o777)).await?;
    loop {
        let piece = move |draft: &mut Draft| draft.copy(&source).map(|more| (source, more));
        let more;
        (draft, (source, more)) = draft.then(piece).await?;
        if !more {
            return draft.then(Draft::commit).await.map(drop);
        }
    }
}

/// A file that is not yet in its place. Dropped before that, it is removed soon after.
pub(super) struct Draft {
    pool: Pool,
    path: Path,
    place: Arc<Place>,
    file: OwnedFd,
    /// Its own name, until it has its final one.
    name: Option<CString>,
    mode: u32,
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let place = Arc::clone(&self.place);
            self.pool.later(move || {
                let _ = unlinkat(&place.directory, &name, AtFlags::empty());
            });
        }
    }
}

impl Draft {
    /// Begins a file at `path`, with `mode` or that of the file it replaces.
    pub(super) async fn begin(
        files: &Files,
        path: &str,
        mode: Option<u32>,
    ) -> Result<Self, Failure> {
        let (pool, path) = (files.pool.clone(), files.path(path)?);
        files.pool.run(move || Self::new(pool, path, mode)).await?
    }

    fn new(pool: Pool, path: Path, mode: Option<u32>) -> Result<Self, Failure> {
        let failed = |cause: Errno| of_file(path.asked(), &cause.into());
        path.make_parents().map_err(failed)?;
        let place = Arc::new(path.resolve().map_err(failed)?);
        let there = statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW);
        let replaces = there.is_ok();
        let mode = match there {
            Ok(stat) => {
                regular(&path, &stat)?;
                // It will be replaced, which asks nothing of it: but then `chmod a-w` would
                // protect it from everybody but us.
                let (access, how) = (Access::WRITE_OK, AtFlags::EACCESS);
                accessat(&place.directory, &place.name, access, how).map_err(failed)?;
                mode.unwrap_or(stat.st_mode & 0o777)
            }
            Err(Errno::NOENT) => mode.unwrap_or(MODE),
            Err(error) => return Err(failed(error)),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        loop {
            let name = fresh_name();
            drafts::remember(name.as_bytes(), replaces);
            let private = Mode::from_raw_mode(0o600);
            match open_at(&place.directory, name.as_c_str(), flags, private) {
                Ok(file) => return Ok(Self { pool, path, place, file, name: Some(name), mode }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Does something to it on another thread. If that fails nothing is left of it when that is
    /// told: what it took of the disk is free again before anyone acts on the failure.
    pub(super) async fn then<T: Send + 'static>(
        mut self,
        action: impl FnOnce(&mut Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<(Self, T), Failure> {
        let pool = self.pool.clone();
        let work = move || match action(&mut self) {
            Ok(result) => Ok((self, result)),
            Err(failure) => {
                if let Some(name) = self.name.take() {
                    let _ = unlinkat(&self.place.directory, &name, AtFlags::empty());
                }
                drop(self);
                Err(failure)
            }
        };
        pool.run(work).await?
    }

    /// Where it will be.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// What the host calls it.
    pub(super) fn asked(&self) -> &str {
        shown(self.path.asked())
    }

    fn failed(&self, cause: Errno) -> Failure {
        of_file(self.path.asked(), &cause.into())
    }

    pub(super) fn write(&mut self, mut data: &[u8]) -> Result<(), Failure> {
        while !data.is_empty() {
            match write(&self.file, data) {
                Ok(count) => data = &data[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    /// Copies a piece; false when there is no more.
    fn copy(&mut self, source: &OwnedFd) -> Result<bool, Failure> {
        let mut buffer = vec![0; BUFFER];
        for _ in 0..PIECE / BUFFER {
            match read(source, &mut buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => self.write(&buffer[..count])?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(true)
    }

    /// Puts it into its place.
    pub(super) fn commit(&mut self) -> Result<(), Failure> {
        let failed = |cause: Errno| of_file(self.path.asked(), &cause.into());
        fchmod(&self.file, Mode::from_raw_mode(self.mode)).map_err(failed)?;
        if let Some(name) = &self.name {
            let Place { directory, name: goal } = &*self.place;
            renameat(directory, name, directory, goal).map_err(failed)?;
        }
        self.name = None;
        Ok(())
    }
}

/// A name that nothing has; should it have, another will do.
fn fresh_name() -> CString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("{PREFIX}{:x}-{:x}-{count:x}.part", now.as_secs(), now.subsec_nanos());
    CString::new(name).unwrap_or_default()
}
