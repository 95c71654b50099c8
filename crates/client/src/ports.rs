//! Programs in a session that listen.

use atoll_types::{id::SessionId, port::PortList};
use hyper::header::HeaderMap;

use crate::{Client, Tunnel, error::Result, sessions::at};

impl Client {
    /// The TCP ports on which something in the sandbox listens, lowest first.
    pub async fn ports(&self, id: &SessionId) -> Result<Vec<u16>> {
        self.get(&at(id, "/ports")).await.map(|PortList { ports }| ports)
    }

    /// Connects to a TCP port of the sandbox's loopback.
    pub async fn connect_port(&self, id: &SessionId, port: u16) -> Result<Tunnel> {
        self.upgrade(&at(id, &format!("/ports/{port}")), "tcp", HeaderMap::new()).await
    }
}
