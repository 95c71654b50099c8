//! Files of a session, with the rights of what runs in it.

use std::sync::Arc;

use atoll_engine::ByteStream;
use atoll_types::{
    file::{Entry, Listing},
    id::SessionId,
};
use futures_util::StreamExt as _;

use crate::{Error, Result, Service};

impl Service {
    /// Opens a file for reading. The session is in use while the stream is held.
    pub async fn read_file(&self, id: &SessionId, path: &str) -> Result<ByteStream> {
        let live = self.live(id).await?;
        let held = Arc::new(live.hold());
        Ok(holding(live.sandbox.files().read(path).await?, held))
    }

    /// Packs a directory or a file as a tar archive. The session is in use while the stream is
    /// held.
    pub async fn pack_files(&self, id: &SessionId, path: &str) -> Result<ByteStream> {
        let live = self.live(id).await?;
        let held = Arc::new(live.hold());
        Ok(holding(live.sandbox.files().pack(path).await?, held))
    }

    /// Unpacks a tar archive into a directory. If this fails or is dropped, what was whole stays.
    pub async fn unpack_files(
        &self,
        id: &SessionId,
        path: &str,
        archive: ByteStream,
    ) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().unpack(path, archive).await?)
    }

    /// Writes a whole file in one step; if this fails or is dropped, the old one stays.
    pub async fn write_file(&self, id: &SessionId, path: &str, content: ByteStream) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().write(path, content).await?)
    }

    /// What a directory holds.
    pub async fn list_files(&self, id: &SessionId, path: &str) -> Result<Listing> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().list(path).await?)
    }

    /// What a path names; a link is told as a link.
    pub async fn stat_file(&self, id: &SessionId, path: &str) -> Result<Entry> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().stat(path).await?)
    }

    /// Makes a directory and those it needs.
    pub async fn make_directory(&self, id: &SessionId, path: &str) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().make_directory(path).await?)
    }

    /// Moves a file or directory.
    pub async fn move_file(&self, id: &SessionId, from: &str, to: &str) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().rename(from, to).await?)
    }

    /// Copies a file.
    pub async fn copy_file(&self, id: &SessionId, from: &str, to: &str) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().copy(from, to).await?)
    }

    /// Removes a file, a link, or a directory with all it holds.
    pub async fn remove_file(&self, id: &SessionId, path: &str) -> Result<()> {
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().remove(path).await?)
    }

    /// Sets a file's permission bits.
    pub async fn set_file_mode(&self, id: &SessionId, path: &str, mode: u32) -> Result<()> {
        if mode > 0o777 {
            return Err(Error::invalid("`mode` must be from 0 to 511 (0o777)"));
        }
        let live = self.live(id).await?;
        let _held = live.hold();
        Ok(live.sandbox.files().set_mode(path, mode).await?)
    }
}

/// Content that keeps a session in use while it is read.
fn holding<T: Send + Sync + 'static>(content: ByteStream, held: Arc<T>) -> ByteStream {
    content
        .map(move |chunk| {
            let _in_use = &held;
            chunk
        })
        .boxed()
}
