//! Files over sound ones, with one flaw.

use std::sync::Arc;

use async_trait::async_trait;
use atoll_engine::{
    ByteStream, Change, Changes, Edit, Edited, Entry, Files, Glob, Grep, Kind, Listing, Matches,
    Result, Sandbox,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::flaw::Flaw;

#[derive(Debug)]
pub(crate) struct FlawedFiles {
    pub(crate) inner: Arc<dyn Sandbox>,
    pub(crate) flaw: Flaw,
}

fn whole(pieces: &[Bytes]) -> ByteStream {
    stream::iter([Ok(Bytes::from(pieces.concat()))]).boxed()
}

impl FlawedFiles {
    fn sound(&self) -> &dyn Files {
        self.inner.files()
    }

    /// Puts what has come so far in place each time something comes.
    async fn write_in_place(&self, path: &str, mut content: ByteStream) -> Result<()> {
        let mut seen = Vec::new();
        while let Some(piece) = content.try_next().await? {
            seen.push(piece);
            self.sound().write(path, whole(&seen)).await?;
        }
        Ok(())
    }

    /// Takes an error for the end.
    async fn write_half(&self, path: &str, mut content: ByteStream) -> Result<()> {
        let mut seen = Vec::new();
        while let Ok(Some(piece)) = content.try_next().await {
            seen.push(piece);
        }
        self.sound().write(path, whole(&seen)).await
    }
}

#[async_trait]
impl Files for FlawedFiles {
    async fn read(&self, path: &str) -> Result<ByteStream> {
        if self.flaw != Flaw::ReadsWhatComesLater {
            return self.sound().read(path).await;
        }
        // Opened only when it is read from.
        let (inner, path) = (Arc::clone(&self.inner), path.to_owned());
        let late = async move { inner.files().read(&path).await };
        Ok(stream::once(late).try_flatten().boxed())
    }

    async fn write(&self, path: &str, content: ByteStream) -> Result<()> {
        match self.flaw {
            Flaw::WritesInPlace => self.write_in_place(path, content).await,
            Flaw::KeepsHalfAFile => self.write_half(path, content).await,
            Flaw::LosesModes => {
                self.sound().write(path, content).await?;
                self.sound().set_mode(path, 0o644).await
            }
            _ => self.sound().write(path, content).await,
        }
    }

    async fn list(&self, path: &str) -> Result<Listing> {
        let mut listing = self.sound().list(path).await?;
        if self.flaw == Flaw::ListsInDisorder {
            listing.entries.reverse();
        }
        Ok(listing)
    }

    async fn stat(&self, path: &str) -> Result<Entry> {
        let mut entry = self.sound().stat(path).await?;
        if self.flaw == Flaw::FollowsLinks && entry.kind == Kind::Symlink {
            (entry.kind, entry.target) = (Kind::File, None);
        }
        Ok(entry)
    }

    async fn make_directory(&self, path: &str) -> Result<()> {
        self.sound().make_directory(path).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.sound().rename(from, to).await
    }

    async fn copy(&self, from: &str, to: &str) -> Result<()> {
        self.sound().copy(from, to).await
    }

    async fn remove(&self, path: &str) -> Result<()> {
        self.sound().remove(path).await
    }

    async fn set_mode(&self, path: &str, mode: u32) -> Result<()> {
        self.sound().set_mode(path, mode).await
    }

    async fn pack(&self, path: &str) -> Result<ByteStream> {
        let archive = self.sound().pack(path).await?;
        if self.flaw != Flaw::EndsArchivesEarly {
            return Ok(archive);
        }
        let pieces: Vec<Bytes> = archive.try_collect().await?;
        let all = Bytes::from(pieces.concat());
        Ok(stream::iter([Ok(all.slice(..all.len() - 512))]).boxed())
    }

    async fn unpack(&self, path: &str, archive: ByteStream) -> Result<()> {
        if self.flaw != Flaw::UnpacksHalfAnArchive {
            return self.sound().unpack(path, archive).await;
        }
        let _ = self.sound().unpack(path, archive).await;
        Ok(())
    }

    async fn watch(&self, path: &str, recursive: bool) -> Result<Changes> {
        let recursive = recursive && self.flaw != Flaw::WatchesNothingBelow;
        let changes = self.sound().watch(path, recursive).await?;
        let hidden = match self.flaw {
            Flaw::HidesOverflows => |change: &Change| matches!(change, Change::Overflow),
            Flaw::HidesMoves => |change: &Change| matches!(change, Change::Moved { .. }),
            _ => return Ok(changes),
        };
        let kept = move |change: &Result<Change>| {
            let keep = !change.as_ref().is_ok_and(hidden);
            std::future::ready(keep)
        };
        Ok(changes.filter(kept).boxed())
    }

    async fn glob(&self, glob: &Glob) -> Result<Listing> {
        let mut found = self.sound().glob(glob).await?;
        match self.flaw {
            Flaw::FindsInDisorder => found.entries.reverse(),
            Flaw::HidesThatThereIsMore => found.truncated = false,
            _ => {}
        }
        Ok(found)
    }

    async fn grep(&self, grep: &Grep) -> Result<Matches> {
        let mut grep = grep.clone();
        if self.flaw == Flaw::IgnoresCase {
            grep.ignore_case = true;
        }
        self.sound().grep(&grep).await
    }

    async fn edit(&self, path: &str, edits: &[Edit]) -> Result<Edited> {
        if self.flaw != Flaw::EditsOneByOne {
            return self.sound().edit(path, edits).await;
        }
        let mut all = Edited::default();
        for edit in edits {
            let one = self.sound().edit(path, std::slice::from_ref(edit)).await?;
            all = Edited { replaced: all.replaced + one.replaced, size: one.size };
        }
        Ok(all)
    }
}
