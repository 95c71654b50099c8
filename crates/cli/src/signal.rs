//! The wish to stop: ^C, `kill`, a terminal that was closed.

mod sys;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Doing as _, Result};

/// Listens for `SIGINT`, `SIGTERM` and `SIGHUP` from the moment it is made.
#[derive(Debug)]
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// Which signal asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked(u8);

impl Asked {
    /// The exit code shells show for a program ended by it.
    pub(crate) fn code(self) -> u8 {
        128 + self.0
    }

    /// Ends this process by the signal that asked, as if nobody had listened: a shell stops its
    /// loop only for a program that ^C ended. Returns where signals cannot do that, as in the first
    /// process of a container.
    pub(crate) fn obey(self) {
        sys::end_by(self.0);
    }

    pub(crate) fn hangup(self) -> bool {
        self.0 == 1
    }
}

/// How a command ended that listens for signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Code(u8),
    Asked(Asked),
}

impl Stop {
    pub(crate) fn new() -> Result<Self> {
        let listen = |kind| signal(kind).doing(|| "cannot listen for signals".into());
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Returns at the next such signal. Dropping the future loses none.
    pub(crate) async fn asked(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked(2),
            _ = self.terminate.recv() => Asked(15),
            _ = self.hangup.recv() => Asked(1),
        }
    }
}
