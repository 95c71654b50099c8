//! A terminal: the end a guest has, and the end that never reaches one.

use std::{io, os::fd::OwnedFd, sync::Arc};

use atoll_agent_protocol::message::TerminalSize;
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fstat, major, openat},
    io::{Errno, fcntl_dupfd_cloexec},
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, ptsname, unlockpt},
    termios::{
        InputModes, OptionalActions, SpecialCodeIndex, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
    },
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Terminals that may be open at one time.
pub(crate) const TERMINALS: usize = 64;
/// The most rows, and the most columns. A program may well make room for each cell.
pub(crate) const MAX_SIDE: u16 = 10_000;
/// The kernel's number for the guests' ends of terminals.
const SLAVES: std::ops::RangeInclusive<u32> = 136..=143;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    rows: u16,
    columns: u16,
}

impl Size {
    /// What a host asked for; none if it is none.
    pub(crate) fn new(asked: TerminalSize) -> Option<Self> {
        let side = |count| u16::try_from(count).ok().filter(|count| (1..=MAX_SIDE).contains(count));
        Some(Self { rows: side(asked.rows)?, columns: side(asked.columns)? })
    }

    pub(crate) fn to_message(self) -> TerminalSize {
        TerminalSize { rows: self.rows.into(), columns: self.columns.into() }
    }
}

/// Both ends. When the last of this and of what [`master`](Self::master) gave is dropped, the
/// terminal is hung up.
#[derive(Debug)]
pub(crate) struct Terminal {
    master: OwnedFd,
    /// Kept, so that a guest that closes its own cannot make ours report an end again and again.
    slave: OwnedFd,
    _permit: OwnedSemaphorePermit,
}

impl Terminal {
    /// A new one, which belongs to the thread's user of files.
    pub(crate) fn open(size: Size, permits: &Arc<Semaphore>) -> io::Result<Self> {
        let permit = Arc::clone(permits).try_acquire_owned();
        let permit = permit.map_err(|_| io::Error::from(Errno::NOSPC))?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        unlockpt(&master)?;
        let slave = match ioctl_tiocgptpeer(&master, flags) {
            Err(Errno::INVAL | Errno::NOTTY | Errno::NOSYS) => by_name(&master)?,
            peer => peer?,
        };
        let mut modes = tcgetattr(&slave)?;
        // Erasing then takes a letter back, not a byte.
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&slave, OptionalActions::Now, &modes)?;
        let terminal = Self { master, slave, _permit: permit };
        terminal.resize(size)?;
        Ok(terminal)
    }

    /// Another name of our end.
    pub(crate) fn master(&self) -> io::Result<OwnedFd> {
        Ok(fcntl_dupfd_cloexec(&self.master, 0)?)
    }

    /// The guest's end.
    pub(crate) fn slave(&self) -> &OwnedFd {
        &self.slave
    }

    /// Sets the size; the foreground group is told if it is another.
    pub(crate) fn resize(&self, Size { rows, columns }: Size) -> io::Result<()> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(&self.master, size)?)
    }

    /// What a user types to end the input, if anything does.
    pub(crate) fn end_of_file(&self) -> Option<u8> {
        let modes = tcgetattr(&self.master).ok()?;
        Some(modes.special_codes[SpecialCodeIndex::VEOF]).filter(|code| *code != 0)
    }
}

/// For kernels that do not open it without its name. It may be a guest's directory where that
/// leads, so what is there is looked at.
fn by_name(master: &OwnedFd) -> io::Result<OwnedFd> {
    let name = ptsname(master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let slave = openat(CWD, name, flags | OFlags::NONBLOCK, Mode::empty())?;
    let found = fstat(&slave)?;
    let device = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
    if !device || !SLAVES.contains(&major(found.st_rdev)) {
        return Err(Errno::NODEV.into());
    }
    rustix::fs::fcntl_setfl(&slave, OFlags::RDWR)?;
    Ok(slave)
}
