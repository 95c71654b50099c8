//! What the kernel says, taken out of its queue.

use std::{mem::MaybeUninit, os::fd::OwnedFd};

use rustix::{
    fs::inotify::{ReadFlags, Reader},
    io::Errno,
};

/// Events taken at once.
const MOST: usize = 1024;
const BUFFER: usize = 16 << 10;

/// One thing that happened in a directory, or to it if there is no name.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) directory: i32,
    pub(super) what: ReadFlags,
    pub(super) cookie: u32,
    pub(super) name: Vec<u8>,
}

impl Event {
    pub(super) fn is(&self, what: ReadFlags) -> bool {
        self.what.intersects(what)
    }

    /// Whether it is about a directory.
    pub(super) fn of_directory(&self) -> bool {
        self.is(ReadFlags::ISDIR)
    }
}

/// Some events, in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) events: Vec<Event>,
    /// There may be more already.
    pub(super) full: bool,
}

impl Batch {
    /// Takes what is there, without waiting.
    pub(super) fn read(inotify: &OwnedFd) -> Result<Self, Errno> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(inotify, &mut buffer);
        let mut batch = Self::default();
        loop {
            // Whole buffers only: what is in one is lost with it.
            if batch.events.len() >= MOST && reader.is_buffer_empty() {
                batch.full = true;
                return Ok(batch);
            }
            match reader.next() {
                Ok(event) => batch.events.push(Event {
                    directory: event.wd(),
                    what: event.events(),
                    cookie: event.cookie(),
                    name: event.file_name().map_or_else(Vec::new, |name| name.to_bytes().to_vec()),
                }),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(batch),
                Err(error) => return Err(error),
            }
        }
    }
}
