//! One sandbox, from outside.

use std::{io, os::fd::OwnedFd, sync::Arc};

use async_trait::async_trait;
use atoll_agent_client::{Counters, Link, Warden};
use atoll_engine::{Error, Result};
use tokio::io::unix::AsyncFd;

use crate::{place::Place, process, sys};

/// The engine's hand on a sandbox: its place, and its first process.
#[derive(Debug)]
pub(crate) struct Watch {
    place: Arc<Place>,
    /// Becomes readable when the first process, and with it every other, is gone.
    init: AsyncFd<OwnedFd>,
}

impl Watch {
    pub(crate) fn new(place: Arc<Place>, init: OwnedFd) -> io::Result<Self> {
        Ok(Self { place, init: sys::watched(init)? })
    }
}

#[async_trait]
impl Warden for Watch {
    async fn connect(&self) -> Result<Box<dyn Link>> {
        let link = self.place.connect().await;
        let link = link.map_err(|error| Error::lost("the sandbox is gone").because(error))?;
        Ok(Box::new(link))
    }

    fn counters(&self) -> Counters {
        self.place.guests.counters()
    }

    fn has_own_loopback(&self) -> bool {
        // Every sandbox here has a network namespace of its own.
        true
    }

    async fn ended(&self) {
        // Fails only if the runtime is shutting down.
        let _ = self.init.readable().await;
        process::reap(self.init.get_ref());
    }

    async fn destroy(&self) -> Result<()> {
        clear(Arc::clone(&self.place)).await
    }
}

/// Ends and removes what is at `place`. Goes on if the future is dropped.
pub(crate) async fn clear(place: Arc<Place>) -> Result<()> {
    let cleared = tokio::task::spawn_blocking(move || place.clear()).await;
    let cleared = cleared.map_err(io::Error::other).flatten();
    cleared.map_err(|error| Error::internal("the sandbox cannot be removed").because(error))
}
