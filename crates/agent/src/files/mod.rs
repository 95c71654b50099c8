//! The files of the sandbox, as its user sees them.

mod archive;
mod drafts;
mod edit;
mod glob;
mod grep;
mod list;
mod pattern;
mod place;
mod pool;
mod read;
mod remove;
mod walk;
mod watch;
mod write;

use std::{sync::Arc, time::Duration};

use atoll_agent_protocol::{
    message::{Done, Failure, FromTo, OfPath, SetMode, Watch, request::Call, response::Answer},
    mux::Stream,
};
use place::{Path, Place, entry, make_directories};
pub(crate) use pool::Pool;
use rustix::{
    fs::{AtFlags, FileType, Mode, chmodat, renameat, statat, unlinkat},
    io::Errno,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::{
    calls::say,
    failure::{exhausted, invalid, of_file},
    launch::Guests,
};

/// Searches and edits at one time: each may hold some memory.
const SEARCHES: usize = 4;
/// How long one waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Files {
    pool: Pool,
    home: String,
    searches: Semaphore,
    watches: Arc<watch::Bounds>,
}

impl Files {
    /// Files as `guests` see them. Relative paths begin at `home`.
    pub(crate) fn new(home: String, guests: Guests) -> Self {
        Self {
            pool: Pool::new(guests),
            home,
            searches: Semaphore::new(SEARCHES),
            watches: Arc::default(),
        }
    }

    /// Waits for a turn to search or edit.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Failure> {
        let turn = timeout(PATIENCE, self.searches.acquire()).await;
        turn.ok()
            .and_then(Result::ok)
            .ok_or_else(|| exhausted("too many searches and edits at the same time"))
    }

    /// Where guests' rights hold.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    fn path(&self, path: &str) -> Result<Path, Failure> {
        Path::new(&self.home, path)
    }

    /// Does one thing to a path.
    async fn act<T: Send + 'static>(
        &self,
        path: &str,
        action: impl FnOnce(&Path) -> rustix::io::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let path = self.path(path)?;
        let what = path.asked().to_owned();
        let result = self.pool.run(move || action(&path)).await?;
        result.map_err(|cause| of_file(&what, &cause.into()))
    }
}

/// Answers a call about files.
pub(crate) async fn answer(files: &Files, call: Call, stream: &Stream) -> Result<(), Failure> {
    match call {
        Call::ReadFile(OfPath { path }) => return read::read(files, &path, stream).await,
        Call::ListDirectory(OfPath { path }) => return list::list(files, &path, stream).await,
        Call::Pack(OfPath { path }) => return archive::pack(files, &path, stream).await,
        Call::Unpack(OfPath { path }) => archive::unpack(files, &path, stream).await?,
        Call::Stat(OfPath { path }) => {
            let told = files.act(&path, tell).await?;
            say(stream, Answer::Entry(told)).await;
            return Ok(());
        }
        Call::Watch(Watch { path, recursive }) => {
            return watch::watch(files, &path, recursive, stream).await;
        }
        Call::Glob(ask) => return glob::glob(files, ask, stream).await,
        Call::Grep(ask) => return grep::grep(files, ask, stream).await,
        Call::Edit(ask) => {
            let edited = edit::edit(files, ask).await?;
            say(stream, Answer::Edited(edited)).await;
            return Ok(());
        }
        Call::WriteFile(OfPath { path }) => write::receive(files, &path, stream).await?,
        Call::MakeDirectory(OfPath { path }) => {
            files.act(&path, |path| make_directories(path.as_str()).map(drop)).await?;
        }
        Call::Rename(FromTo { from, to }) => rename(files, &from, &to).await?,
        Call::Copy(FromTo { from, to }) => write::copy(files, &from, &to).await?,
        Call::Remove(OfPath { path }) => remove::remove(files, &path).await?,
        Call::SetMode(SetMode { path, mode }) => set_mode(files, &path, mode).await?,
        _ => return Err(invalid("this agent does not know that call")),
    }
    say(stream, Answer::Done(Done { truncated: false })).await;
    Ok(())
}

fn tell(path: &Path) -> rustix::io::Result<atoll_agent_protocol::message::Entry> {
    let (stat, target) = path.stat()?;
    Ok(entry(path.name().as_bytes(), path.as_str().into(), &stat, target))
}

async fn rename(files: &Files, from: &str, to: &str) -> Result<(), Failure> {
    let goal = files.path(to)?;
    let action = move |path: &Path| {
        let Place { directory, name } = path.place()?;
        // Whether the source is there is told first: it is what was asked about.
        let stat = statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        let file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let to = goal.place()?;
        match renameat(&directory, &name, &to.directory, &to.name) {
            Err(Errno::XDEV) if file => Ok(true),
            result => result.map(|()| false),
        }
    };
    if !files.act(from, action).await? {
        return Ok(());
    }
    // Another file system, such as a mounted directory.
    write::copy(files, from, to).await?;
    files
        .act(from, |path| {
            let Place { directory, name } = path.place()?;
            unlinkat(&directory, &name, AtFlags::empty())
        })
        .await
}

async fn set_mode(files: &Files, path: &str, mode: u32) -> Result<(), Failure> {
    if mode > 0o777 {
        return Err(invalid("a mode is a number from 0 to 0o777"));
    }
    files
        .act(path, move |path| {
            let Place { directory, name } = path.resolve()?;
            chmodat(&directory, &name, Mode::from_raw_mode(mode), AtFlags::empty())
        })
        .await
}
