//! Waiting for the end of a process.

#![expect(unsafe_code, reason = "a descriptor is registered for as long as it is owned")]

use std::{io, os::fd::OwnedFd};

use tokio::io::unix::AsyncFd;

/// A process that is being waited for.
#[derive(Debug)]
pub(crate) struct Vigil(AsyncFd<OwnedFd>);

impl Vigil {
    /// `process` is a pidfd. Called within a runtime.
    pub(crate) fn new(process: OwnedFd) -> io::Result<Self> {
        // SAFETY: an `OwnedFd` is open and the same until it is dropped, and it is dropped only
        // with the `AsyncFd` that owns it.
        Ok(Self(unsafe { AsyncFd::register(process) }?))
    }

    /// Returns when the process has ended.
    pub(crate) async fn over(&self) {
        // Readable from its end on. An error would mean that nobody can tell any more, and then it
        // is over for us.
        let _ = self.0.readable().await;
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::Identity;

    #[tokio::test]
    async fn an_end_is_noticed_by_all_who_wait() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let process = Identity::of(child.id().cast_signed()).unwrap().open().unwrap();
        let vigil = Vigil::new(process).unwrap();

        drop(child.stdin.take());

        tokio::join!(vigil.over(), vigil.over());
        vigil.over().await;
        child.wait().unwrap();
    }
}
