//! Finding, changing and following the files of a session's sandbox.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use atoll_types::{
    error::ErrorBody,
    file::Listing,
    id::SessionId,
    search::{EditFile, Edited, Glob, Grep, Matches},
    watch::Change,
};
use futures_util::Stream;
use hyper::{Method, header::HeaderMap};

use crate::{
    Client, body,
    error::{Error, Refused, Result},
    files::Download,
    query,
    sessions::at,
    sse::{Message, Parser},
};

impl Client {
    /// Finds files, directories and links by name.
    pub async fn glob_files(&self, id: &SessionId, glob: &Glob) -> Result<Listing> {
        self.post(&at(id, "/files/glob"), glob).await
    }

    /// Finds lines in regular files.
    pub async fn grep_files(&self, id: &SessionId, grep: &Grep) -> Result<Matches> {
        self.post(&at(id, "/files/grep"), grep).await
    }

    /// Replaces text in a file: all that is asked for, or nothing.
    pub async fn edit_file(&self, id: &SessionId, edit: &EditFile) -> Result<Edited> {
        self.post(&at(id, "/files/edit"), edit).await
    }

    /// What happens in a directory, from the moment this returns.
    pub async fn watch_files(
        &self,
        id: &SessionId,
        path: &str,
        recursive: bool,
    ) -> Result<Changes> {
        let recursive = recursive.to_string();
        let pairs = [("path", path), ("recursive", recursive.as_str())];
        let target = query::with(&at(id, "/files/watch"), pairs);
        let answer = self.send(Method::GET, &target, HeaderMap::new(), body::empty()).await?;
        let bytes = Download(answer.into_body());
        Ok(Changes { bytes, parser: Parser::default(), over: false })
    }
}

/// What happens to files, as it happens. Ends when the watched directory is gone, or the server
/// goes away.
#[derive(Debug)]
pub struct Changes {
    bytes: Download,
    parser: Parser,
    over: bool,
}

impl Changes {
    fn poll_change(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Change>>> {
        loop {
            match self.parser.next() {
                Ok(Some(message)) => return Poll::Ready(Some(read(&message))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(Error::Garbled(error.to_string())))),
            }
            match ready!(Pin::new(&mut self.bytes).poll_next(context)) {
                Some(Ok(bytes)) => self.parser.push(&bytes),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Stream for Changes {
    type Item = Result<Change>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let change = ready!(self.poll_change(context));
        self.over = !matches!(change, Some(Ok(_)));
        Poll::Ready(change)
    }
}

fn read(message: &Message) -> Result<Change> {
    let garbled = |error: serde_json::Error| Error::Garbled(error.to_string());
    if message.kind == "error" {
        let body: ErrorBody = serde_json::from_str(&message.data).map_err(garbled)?;
        return Err(Refused::new(200, body.error).into());
    }
    serde_json::from_str(&message.data).map_err(garbled)
}
