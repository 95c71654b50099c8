//! Files, as the agent reads and writes them with the guest's rights.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use atoll_agent_protocol::{
    message::{
        self, FromTo, Nothing, OfPath, SetMode, Upload, request::Call, response::Answer, upload,
    },
    mux::Stream,
};
use atoll_engine::{
    ByteStream, Changes, Edit, Edited, Entry, Error, Files, Glob, Grep, Listing, Matches, Result,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use crate::{
    AgentSandbox, archive, changes, entry, failure,
    line::{self, within},
    sandbox::ANSWER,
    search,
};

/// Bytes of content in one message.
const CHUNK: usize = 128 << 10;
/// How long what walks a whole tree, or copies a whole file, may take.
const LONG: Duration = Duration::from_mins(10);
/// How long a search may take; an agent gives up sooner.
const SEARCH: Duration = Duration::from_mins(2);
/// Names in a listing, and their bytes.
const MAX_ENTRIES: usize = 100_000;
const MAX_NAMES: usize = 32 << 20;
/// Bytes of a path; a kernel takes fewer.
const MAX_PATH: usize = 64 << 10;

#[async_trait]
impl Files for AgentSandbox {
    async fn read(&self, path: &str) -> Result<ByteStream> {
        let path = checked(path)?;
        let inner = Arc::clone(&self.inner);
        let opened = within(ANSWER, async {
            let stream = inner.flows.begin(Call::ReadFile(path)).await?;
            stream.finish();
            match line::answer(&stream).await? {
                Answer::Entry(entry) => Ok((stream, entry.size)),
                _ => Err(failure::nonsense()),
            }
        });
        let (stream, left) = inner.living(opened).await?;
        let content = stream::unfold((Some(stream), left), move |(stream, left)| {
            let inner = Arc::clone(&inner);
            async move {
                let stream = stream?;
                let chunk = inner.living(within(ANSWER, chunk(&stream, left))).await;
                match chunk {
                    Ok(None) => None,
                    Ok(Some(chunk)) => {
                        let left = left - chunk.len() as u64;
                        Some((Ok(chunk), (Some(stream), left)))
                    }
                    Err(error) => Some((Err(error), (None, 0))),
                }
            }
        });
        Ok(content.boxed())
    }

    async fn write(&self, path: &str, content: ByteStream) -> Result<()> {
        self.send(Call::WriteFile(checked(path)?), content).await
    }

    async fn list(&self, path: &str) -> Result<Listing> {
        let call = Call::ListDirectory(checked(path)?);
        self.inner.living(within(LONG, self.listing(call))).await
    }

    async fn stat(&self, path: &str) -> Result<Entry> {
        match self.inner.ask(Call::Stat(checked(path)?), ANSWER).await? {
            Answer::Entry(found) => Ok(entry::read(&found)),
            _ => Err(failure::nonsense()),
        }
    }

    async fn make_directory(&self, path: &str) -> Result<()> {
        self.inner.order(Call::MakeDirectory(checked(path)?), ANSWER).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.order(Call::Rename(both(from, to)?), ANSWER).await
    }

    async fn copy(&self, from: &str, to: &str) -> Result<()> {
        self.inner.order(Call::Copy(both(from, to)?), LONG).await
    }

    async fn remove(&self, path: &str) -> Result<()> {
        self.inner.order(Call::Remove(checked(path)?), LONG).await
    }

    async fn set_mode(&self, path: &str, mode: u32) -> Result<()> {
        if mode > 0o777 {
            return Err(Error::invalid("permission bits are 0 to 0777"));
        }
        let path = checked(path)?.path;
        self.inner.order(Call::SetMode(SetMode { path, mode }), ANSWER).await
    }

    async fn pack(&self, path: &str) -> Result<ByteStream> {
        archive::pack(&self.inner, checked(path)?).await
    }

    async fn unpack(&self, path: &str, archive: ByteStream) -> Result<()> {
        self.send(Call::Unpack(checked(path)?), archive).await
    }

    async fn watch(&self, path: &str, recursive: bool) -> Result<Changes> {
        changes::watch(&self.inner, path, recursive).await
    }

    async fn glob(&self, glob: &Glob) -> Result<Listing> {
        let (call, limit) = search::glob(glob)?;
        self.inner.living(within(SEARCH, self.found_files(call, limit))).await
    }

    async fn grep(&self, grep: &Grep) -> Result<Matches> {
        let (call, limit) = search::grep(grep)?;
        self.inner.living(within(SEARCH, self.found_lines(call, limit))).await
    }

    async fn edit(&self, path: &str, edits: &[Edit]) -> Result<Edited> {
        search::edited(&self.inner.ask(search::edit(path, edits)?, SEARCH).await?)
    }
}

impl AgentSandbox {
    /// Sends what follows a call, and waits until the agent has done with it.
    async fn send(&self, call: Call, content: ByteStream) -> Result<()> {
        self.inner
            .living(async {
                let stream = within(ANSWER, self.inner.flows.begin(call)).await?;
                if let Err(error) = upload(&stream, content).await {
                    // The agent answers when nothing is left of what it had of the file.
                    stream.finish();
                    let _ = within(ANSWER, line::answer(&stream)).await;
                    return Err(error);
                }
                match within(LONG, line::answer(&stream)).await? {
                    Answer::Done(_) => Ok(()),
                    _ => Err(failure::nonsense()),
                }
            })
            .await
    }

    async fn listing(&self, call: Call) -> Result<Listing> {
        let stream = self.inner.flows.begin(call).await?;
        stream.finish();
        let (mut entries, mut bytes) = (Vec::new(), 0);
        loop {
            match line::answer(&stream).await? {
                Answer::Entry(found) if entry::is_name(&found.name) => {
                    bytes += size(&found);
                    if entries.len() == MAX_ENTRIES || bytes > MAX_NAMES {
                        return Err(failure::nonsense());
                    }
                    entries.push(entry::read(&found));
                }
                Answer::Done(done) => return Ok(Listing { entries, truncated: done.truncated }),
                _ => return Err(failure::nonsense()),
            }
        }
    }
}

fn size(found: &message::Entry) -> usize {
    found.name.len() + found.path.len() + found.target.as_ref().map_or(0, Vec::len)
}

/// The next bytes of a file of which no more than `left` may come.
async fn chunk(stream: &Stream, left: u64) -> Result<Option<Bytes>> {
    match line::next(stream).await? {
        None => Ok(None),
        Some(Answer::Chunk(chunk)) if !chunk.is_empty() && chunk.len() as u64 <= left => {
            Ok(Some(chunk))
        }
        Some(_) => Err(failure::nonsense()),
    }
}

/// Sends all of `content`. Stops early if the agent has stopped reading: its answer says why.
async fn upload(stream: &Stream, mut content: ByteStream) -> Result<()> {
    while let Some(bytes) = content.next().await {
        let mut bytes = bytes?;
        while !bytes.is_empty() {
            let chunk = bytes.split_to(bytes.len().min(CHUNK));
            if !part(stream, upload::Part::Chunk(chunk)).await? {
                return Ok(());
            }
        }
    }
    part(stream, upload::Part::End(Nothing {})).await?;
    stream.finish();
    Ok(())
}

/// Sends a part; false if the agent does not want it.
async fn part(stream: &Stream, part: upload::Part) -> Result<bool> {
    let upload = Upload { part: Some(part) };
    let sent = within(ANSWER, async { Ok(stream.send(&upload).await) }).await?;
    match sent {
        Ok(()) => Ok(true),
        Err(atoll_agent_protocol::mux::Error::Reset) => Ok(false),
        Err(error) => Err(failure::of_stream(error)),
    }
}

pub(crate) fn checked(path: &str) -> Result<OfPath> {
    if path.is_empty() || path.contains('\0') {
        return Err(Error::invalid("a path is not empty and holds no NUL"));
    }
    if path.len() > MAX_PATH {
        return Err(Error::invalid("the path is too long"));
    }
    Ok(OfPath { path: path.to_owned() })
}

fn both(from: &str, to: &str) -> Result<FromTo> {
    Ok(FromTo { from: checked(from)?.path, to: checked(to)?.path })
}
