//! Files of a session's sandbox.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use atoll_types::{
    file::{ChangeMode, Entry, Exists, Listing, MakeDirectory, Move},
    id::SessionId,
};
use bytes::Bytes;
use futures_util::Stream;
use hyper::{
    Method,
    body::{Body as _, Incoming},
    header::HeaderMap,
};

use crate::{
    Client,
    body::{self, Body},
    error::{Error, Result},
    query,
    sessions::at,
};

/// A file on its way. Ends in an error if it did not come whole.
pub struct Download(pub(crate) Incoming);

impl Client {
    /// Opens a file of any size.
    pub async fn read_file(&self, id: &SessionId, path: &str) -> Result<Download> {
        let target = file(id, "", path);
        let answer = self.send(Method::GET, &target, HeaderMap::new(), body::empty()).await?;
        Ok(Download(answer.into_body()))
    }

    /// Writes a whole file of any size; it is there when this returns, or as it was before.
    ///
    /// An error in `content` leaves the old file, too.
    pub async fn write_file<S>(&self, id: &SessionId, path: &str, content: S) -> Result<()>
    where
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        self.put(id, path, body::streamed(content)).await
    }

    /// Writes a file whose content is at hand.
    pub async fn write_bytes(
        &self,
        id: &SessionId,
        path: &str,
        content: impl Into<Bytes>,
    ) -> Result<()> {
        self.put(id, path, body::whole(content)).await
    }

    /// Opens a directory, or a file, as a tar archive. Names are relative to the directory.
    pub async fn pack_files(&self, id: &SessionId, path: &str) -> Result<Download> {
        let target = file(id, "/archive", path);
        let answer = self.send(Method::GET, &target, HeaderMap::new(), body::empty()).await?;
        Ok(Download(answer.into_body()))
    }

    /// Unpacks a plain tar archive into a directory, which is made if need be.
    ///
    /// When it fails, or `archive` ends in an error, what was whole stays.
    pub async fn unpack_files<S>(&self, id: &SessionId, path: &str, archive: S) -> Result<()>
    where
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        let (target, body) = (file(id, "/archive", path), body::streamed(archive));
        body::nothing(self.send(Method::PUT, &target, HeaderMap::new(), body).await?).await
    }

    async fn put(&self, id: &SessionId, path: &str, content: Body) -> Result<()> {
        let target = file(id, "", path);
        body::nothing(self.send(Method::PUT, &target, HeaderMap::new(), content).await?).await
    }

    pub async fn list_files(&self, id: &SessionId, path: &str) -> Result<Listing> {
        self.get(&file(id, "/list", path)).await
    }

    pub async fn stat_file(&self, id: &SessionId, path: &str) -> Result<Entry> {
        self.get(&file(id, "/stat", path)).await
    }

    pub async fn file_exists(&self, id: &SessionId, path: &str) -> Result<bool> {
        self.get(&file(id, "/exists", path)).await.map(|Exists { exists }| exists)
    }

    pub async fn make_directory(&self, id: &SessionId, path: &str) -> Result<()> {
        self.tell(&at(id, "/files/mkdir"), &MakeDirectory { path: path.to_owned() }).await
    }

    pub async fn move_file(&self, id: &SessionId, from: &str, to: &str) -> Result<()> {
        let body = Move { from: from.to_owned(), to: to.to_owned() };
        self.tell(&at(id, "/files/move"), &body).await
    }

    pub async fn copy_file(&self, id: &SessionId, from: &str, to: &str) -> Result<()> {
        let body = Move { from: from.to_owned(), to: to.to_owned() };
        self.tell(&at(id, "/files/copy"), &body).await
    }

    pub async fn set_file_mode(&self, id: &SessionId, path: &str, mode: u32) -> Result<()> {
        self.tell(&at(id, "/files/chmod"), &ChangeMode { path: path.to_owned(), mode }).await
    }

    /// Removes a file, a link itself, or a directory with all it holds.
    pub async fn remove_file(&self, id: &SessionId, path: &str) -> Result<()> {
        self.delete(&file(id, "", path)).await
    }
}

fn file(id: &SessionId, verb: &str, path: &str) -> String {
    query::with(&at(id, &format!("/files{verb}")), [("path", path)])
}

impl Stream for Download {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let frame = ready!(Pin::new(&mut self.0).poll_frame(context));
            return Poll::Ready(
                match frame.map(|frame| frame.map(hyper::body::Frame::into_data)) {
                    None => None,
                    Some(Ok(Ok(data))) => Some(Ok(data)),
                    Some(Ok(Err(_trailers))) => continue,
                    Some(Err(error)) => Some(Err(Error::broken(error))),
                },
            );
        }
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").finish_non_exhaustive()
    }
}
