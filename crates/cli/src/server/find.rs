//! Looking for a server.

use std::path::PathBuf;

use tokio::net::UnixStream;

use super::{Place, Record};

/// A server that answers.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) record: Record,
    pub(crate) socket: PathBuf,
}

/// The server of a data directory, if one lives and takes connections.
pub(crate) async fn find(place: &Place) -> Option<Found> {
    let record = Record::read(place)?;
    let socket = place.socket();
    UnixStream::connect(&socket).await.ok()?;
    Some(Found { record, socket })
}
