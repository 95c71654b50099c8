//! What the agent is made of once it runs, and how hosts reach it.

use std::{io, os::fd::OwnedFd, os::unix::net, sync::Arc, time::Duration};

use atoll_agent_protocol::mux::Mux;
use tokio::{net::UnixListener, sync::Semaphore, time::sleep};

use crate::{calls, files::Files, process::Starter};

/// Hosts that may be connected at one time.
const CONNECTIONS: usize = 8;

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) starter: Arc<Starter>,
    pub(crate) files: Files,
    /// Whose free space is told.
    pub(crate) disk: String,
    /// One for each connection to a port there may be.
    pub(crate) tunnels: Semaphore,
}

/// Serves hosts until the spawner is gone, which is an error. Then this program must end: with it
/// goes all it started, which is better than a sandbox that can start nothing.
pub(crate) async fn serve(agent: Arc<Agent>, listener: OwnedFd) -> io::Result<()> {
    let listener = net::UnixListener::from(listener);
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    tokio::select! {
        () = agent.starter.launcher.ended() => {}
        () = accept(&agent, &listener, &places) => {}
    }
    Err(io::Error::other("the spawner has ended"))
}

async fn accept(agent: &Arc<Agent>, listener: &UnixListener, places: &Arc<Semaphore>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            // Out of descriptors, most likely: others will be closed.
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        // One too many is hung up on, which it will understand better than silence.
        let Ok(place) = Arc::clone(places).try_acquire_owned() else { continue };
        let agent = Arc::clone(agent);
        tokio::spawn(async move {
            let mux = Mux::server(socket);
            while let Some(stream) = mux.accept().await {
                tokio::spawn(calls::answer(Arc::clone(&agent), stream));
            }
            drop(place);
        });
    }
}
