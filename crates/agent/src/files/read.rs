//! Reading regular files.

use std::os::fd::OwnedFd;

use atoll_agent_protocol::{
    message::{Failure, response::Answer},
    mux::Stream,
};
use bytes::Bytes;
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat, fstat},
    io::{Errno, pread},
};

use super::{
    Files,
    place::{Path, entry, open_at},
};
use crate::{
    calls::say,
    failure::{invalid, of_file, shown},
};

/// What is read at once.
const CHUNK: usize = 128 << 10;

/// Sends the file as it was long when it was opened.
pub(super) async fn read(files: &Files, path: &str, stream: &Stream) -> Result<(), Failure> {
    let place = files.path(path)?;
    let (mut file, stat) = files.pool.run(move || open_regular(&place)).await??;
    let place = files.path(path)?;
    let length = u64::try_from(stat.st_size).unwrap_or(0);
    let told = entry(place.name().as_bytes(), place.as_str().into(), &stat, None);
    if !say(stream, Answer::Entry(told)).await {
        return Ok(());
    }
    let mut offset = 0;
    while offset < length {
        let most = usize::try_from(length - offset).unwrap_or(CHUNK).min(CHUNK);
        let (back, result) = files
            .pool
            .run(move || {
                let result = read_at(&file, offset, most);
                (file, result)
            })
            .await?;
        file = back;
        let data = result.map_err(|cause| of_file(path, &cause.into()))?;
        if data.is_empty() {
            // It was cut short meanwhile: there is no more.
            break;
        }
        offset += data.len() as u64;
        if !say(stream, Answer::Chunk(data)).await {
            break;
        }
    }
    Ok(())
}

/// Opens a file for reading if it is a regular one, without ever waiting for anybody.
pub(super) fn open_regular(path: &Path) -> Result<(OwnedFd, Stat), Failure> {
    let failed = |cause: Errno| of_file(path.asked(), &cause.into());
    // Looked at before it is opened, since opening a pipe or a device does something to it.
    let look = open_at(CWD, path.as_str(), OFlags::PATH, Mode::empty()).map_err(failed)?;
    regular(path, &fstat(&look).map_err(failed)?)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open_at(CWD, path.as_str(), flags, Mode::empty()).map_err(failed)?;
    let stat = fstat(&file).map_err(failed)?;
    regular(path, &stat)?;
    Ok((file, stat))
}

/// Refuses what is no regular file.
pub(super) fn regular(path: &Path, stat: &Stat) -> Result<(), Failure> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(invalid(format!("{}: is a directory", shown(path.asked())))),
        _ => Err(invalid(format!("{}: not a regular file", shown(path.asked())))),
    }
}

fn read_at(file: &OwnedFd, offset: u64, most: usize) -> Result<Bytes, Errno> {
    let mut buffer = vec![0; most];
    let count = loop {
        match pread(file, &mut buffer, offset) {
            Err(Errno::INTR) => {}
            result => break result?,
        }
    };
    buffer.truncate(count);
    Ok(buffer.into())
}
