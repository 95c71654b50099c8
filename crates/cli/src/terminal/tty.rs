//! The terminal this program runs in.

use std::{
    io::{self, IsTerminal as _},
    os::fd::OwnedFd,
    time::Duration,
};

use atoll_types::process::TerminalSize;
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::{Errno, read, write},
    termios::{
        OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
        ttyname,
    },
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::timeout,
};

use super::{sys, watch::Watch};
use crate::failure::{Doing as _, Failure, Result};

/// What most terminals have, for those that do not say.
const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };
/// The most that a sandbox's terminal takes.
const MOST: u16 = 10_000;
/// How long answers may be under way when the terminal is left.
const PATIENCE: Duration = Duration::from_secs(2);
/// A question every terminal answers, and the answer: once it has come, all before it have.
const ARE_YOU_THERE: &[u8] = b"\x1b[5n";
const I_AM: &[u8] = b"\x1b[0n";

/// A terminal in raw mode, until this is dropped.
#[derive(Debug)]
pub(crate) struct Tty {
    /// Opened anew: what this program sets about it is not set for its parent.
    fd: AsyncFd<OwnedFd>,
    before: Termios,
}

impl Tty {
    /// The size of the terminal, and that there is one to read from and to show on.
    pub(crate) fn size_of_here() -> Result<TerminalSize> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Err(Failure::usage("this needs a terminal to type in and to show things on")
                .hint("`atoll exec SESSION -- COMMAND` runs a command without one"));
        }
        Ok(tcgetwinsize(io::stdin()).map_or(USUAL, |size| {
            let side = |count: u16, usual| if count == 0 { usual } else { count.min(MOST) };
            TerminalSize {
                rows: side(size.ws_row, USUAL.rows),
                columns: side(size.ws_col, USUAL.columns),
            }
        }))
    }

    /// Takes the terminal over: from now on every key is a byte.
    pub(crate) fn take() -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |name: &std::ffi::CStr| openat(CWD, name, flags, Mode::empty());
        let fd = ttyname(io::stdin(), Vec::new()).and_then(|name| open(&name));
        let fd = fd.or_else(|_| open(c"/dev/tty")).doing(|| "cannot open the terminal".into())?;
        let fd = sys::watch(fd).doing(|| "cannot watch the terminal".into())?;
        let before = tcgetattr(&fd).doing(|| "cannot read the terminal's mode".into())?;
        let mut raw = before.clone();
        raw.make_raw();
        let tty = Self { fd, before };
        let set = tcsetattr(&tty.fd, OptionalActions::Now, &raw);
        set.doing(|| "cannot set the terminal's mode".into())?;
        Ok(tty)
    }

    /// What is typed; nothing at the terminal's end. Dropping the future loses nothing.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let attempt = |fd: &OwnedFd| Ok(read(fd, &mut *buffer)?);
        match retry(&self.fd, Interest::READABLE, attempt).await {
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
            count => count,
        }
    }

    /// Shows bytes, as they are.
    pub(crate) async fn write(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let attempt = |fd: &OwnedFd| Ok(write(fd, data)?);
            let count = retry(&self.fd, Interest::WRITABLE, attempt).await?;
            data = &data[count..];
        }
        Ok(())
    }

    /// Sets the terminal back to what it was before `watch` began, and lets nothing that it still
    /// answers reach whoever reads from it next.
    pub(crate) async fn leave(self, watch: &Watch) {
        let left = async {
            self.write(&watch.undo()).await?;
            if watch.expects_answers() {
                self.write(ARE_YOU_THERE).await?;
                self.discard().await?;
                tcflush(&self.fd, QueueSelector::IFlush)?;
            }
            io::Result::Ok(())
        };
        // A terminal that says nothing has nothing under way either.
        let _ = timeout(PATIENCE, left).await;
        if watch.expects_answers() {
            let _ = tcflush(&self.fd, QueueSelector::IFlush);
        }
    }

    /// Reads up to the answer to [`ARE_YOU_THERE`].
    async fn discard(&self) -> io::Result<()> {
        let (mut seen, mut buffer) = (Vec::new(), [0; 1024]);
        loop {
            let count = self.read(&mut buffer).await?;
            seen.extend_from_slice(&buffer[..count]);
            if count == 0 || seen.windows(I_AM.len()).any(|part| part == I_AM) {
                return Ok(());
            }
            seen.drain(..seen.len().saturating_sub(I_AM.len()));
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.fd, OptionalActions::Now, &self.before);
    }
}

async fn retry<T>(
    fd: &AsyncFd<OwnedFd>,
    interest: Interest,
    mut attempt: impl FnMut(&OwnedFd) -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match fd.async_io(interest, &mut attempt).await {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
