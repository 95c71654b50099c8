//! Directories as tar archives, in pieces small enough that no thread waits for a host.

use std::os::fd::OwnedFd;

use atoll_agent_protocol::{
    message::{Done, Entry, Failure, FailureKind, Upload, response::Answer, upload::Part},
    mux::Stream,
};
use atoll_archive::{Cause, Failed, Packer, Unpacker};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fstat},
    io::Errno,
};

use super::{
    Files,
    place::{Path, entry, make_directories, open_at, open_directory},
    pool::Pool,
    read::open_regular,
};
use crate::{
    calls::say,
    failure::{failure, invalid, kind_of, of_file, shown},
};

/// What is packed at once.
const CHUNK: usize = 128 << 10;
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NONBLOCK);

/// Sends a directory, or one file, as an archive. One that breaks off has no `Done`.
pub(super) async fn pack(files: &Files, path: &str, stream: &Stream) -> Result<(), Failure> {
    let place = files.path(path)?;
    let (told, mut packer) = files.pool.run(move || begin(&place)).await??;
    if !say(stream, Answer::Entry(told)).await {
        return Ok(());
    }
    let mut more = true;
    while more {
        let turn = move || {
            let mut piece = Vec::with_capacity(CHUNK);
            let result = packer.read(&mut piece, CHUNK);
            (packer, result.map(|more| (more, piece)))
        };
        let (back, result) = files.pool.run(turn).await?;
        packer = back;
        let piece;
        (more, piece) = result.map_err(|failed| of_archive(&failed, path))?;
        if !piece.is_empty() && !say(stream, Answer::Chunk(piece.into())).await {
            return Ok(());
        }
    }
    say(stream, Answer::Done(Done { truncated: false })).await;
    Ok(())
}

fn begin(path: &Path) -> Result<(Entry, Packer), Failure> {
    let failed = |cause: Errno| of_file(path.asked(), &cause.into());
    let broken = |failed: Failed| of_archive(&failed, path.asked());
    let look = open_at(CWD, path.as_str(), OFlags::PATH, Mode::empty()).map_err(failed)?;
    let stat = fstat(&look).map_err(failed)?;
    let (packer, stat) = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        let directory = open_at(CWD, path.as_str(), DIRECTORY, Mode::empty()).map_err(failed)?;
        (Packer::directory(directory).map_err(broken)?, stat)
    } else {
        let (file, stat) = open_regular(path)?;
        (Packer::file(file, path.name().as_bytes()).map_err(broken)?, stat)
    };
    Ok((entry(path.name().as_bytes(), path.as_str().into(), &stat, None), packer))
}

/// Takes an archive from a host and unpacks it as it comes.
pub(super) async fn unpack(files: &Files, path: &str, stream: &Stream) -> Result<(), Failure> {
    let place = files.path(path)?;
    let unpacker = files.pool.run(move || destination(&place)).await??;
    let mut work = Unpacking { pool: files.pool.clone(), unpacker: Some(unpacker) };
    loop {
        let Ok(Some(Upload { part: Some(part) })) = stream.recv().await else {
            work.then(path, |unpacker| {
                unpacker.give_up();
                Ok(())
            })
            .await?;
            return Err(invalid("the upload ended before it was whole"));
        };
        match part {
            Part::Chunk(data) => work.then(path, move |unpacker| unpacker.write(&data)).await?,
            Part::End(_) => return work.then(path, |unpacker| unpacker.finish().map(drop)).await,
        }
    }
}

fn destination(path: &Path) -> Result<Unpacker, Failure> {
    let failed = |cause: Errno| of_file(path.asked(), &cause.into());
    let fresh = matches!(open_directory(path.as_str()), Err(Errno::NOENT));
    let directory = make_directories(path.as_str()).map_err(failed)?;
    let directory: OwnedFd = open_at(&directory, ".", DIRECTORY, Mode::empty()).map_err(failed)?;
    Unpacker::new(directory, fresh, 0).map_err(|failed| of_archive(&failed, path.asked()))
}

/// An archive being unpacked. What it leaves is put in order by a thread that has the guest's
/// rights, also when the host is gone.
struct Unpacking {
    pool: Pool,
    unpacker: Option<Unpacker>,
}

impl Unpacking {
    async fn then(
        &mut self,
        path: &str,
        action: impl FnOnce(&mut Unpacker) -> Result<(), Failed> + Send + 'static,
    ) -> Result<(), Failure> {
        let given_up = || invalid("the archive was given up");
        let mut unpacker = self.unpacker.take().ok_or_else(given_up)?;
        let work = move || {
            let result = action(&mut unpacker);
            let entries = unpacker.done().entries;
            // What a failure leaves is gone before anyone hears of it.
            (result.is_ok().then_some(unpacker), result.map_err(|failed| (failed, entries)))
        };
        let (unpacker, result) = self.pool.run(work).await?;
        self.unpacker = unpacker;
        result.map_err(|(failed, entries)| {
            let Failure { kind, message } = of_archive(&failed, path);
            Failure { kind, message: format!("{message} (entries unpacked before it: {entries})") }
        })
    }
}

impl Drop for Unpacking {
    fn drop(&mut self) {
        if let Some(unpacker) = self.unpacker.take() {
            self.pool.later(move || drop(unpacker));
        }
    }
}

/// What went wrong with an archive; `path` is where it comes from or goes to.
fn of_archive(failed: &Failed, path: &str) -> Failure {
    let kind = match failed.cause() {
        Cause::Malformed(_) => FailureKind::Invalid,
        Cause::Refused(_) => FailureKind::Denied,
        Cause::Unsupported(_) => FailureKind::Unsupported,
        Cause::System(error) => kind_of(error.raw_os_error()),
    };
    match failed.entry() {
        Some(_) => failure(kind, failed.to_string()),
        None => failure(kind, format!("{}: {failed}", shown(path))),
    }
}
