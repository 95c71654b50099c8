//! All streams of a connection, as a machine that frames go into and come out of. No input or
//! output happens here, so every rule can be tested without any.
//!
//! Memory is bounded by construction: at most [`MAX_STREAMS`] streams are open, a stream holds at
//! most a window in each direction, every frame of data costs at least [`FRAME_COST`] of it, and
//! frames that need no credit can each be sent once per stream.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::{
    Error, FRAME_COST, MAX_STREAMS, Violation, WINDOW,
    slot::{Signals, Slot},
};
use crate::frame::{Frame, Header};

/// Openings refused before the connection is given up.
const MAX_REFUSED: usize = 1024;
/// Frames that may still be under way to a stream that has ended.
const LATE_FRAMES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Opens streams.
    Client,
    /// Accepts them.
    Server,
}

pub(super) struct State {
    role: Role,
    slots: HashMap<u32, Slot>,
    /// The newest stream; streams are numbered upwards from 1.
    newest: u32,
    /// Not yet accepted, oldest first.
    arrivals: VecDeque<u32>,
    /// Have something to write, in turn.
    ready: VecDeque<u32>,
    /// To be told that they were refused.
    refusals: VecDeque<u32>,
    refused: usize,
    /// Frames to streams that are no more, still tolerated.
    tolerance: usize,
    /// Why the connection ended, once it has.
    pub(super) ended: Option<Error>,
}

impl State {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            slots: HashMap::new(),
            newest: 0,
            arrivals: VecDeque::new(),
            ready: VecDeque::new(),
            refusals: VecDeque::new(),
            refused: 0,
            tolerance: 0,
            ended: None,
        }
    }

    /// Opens a stream; `None` while there are too many.
    pub(super) fn open(&mut self) -> Option<Result<(u32, Arc<Signals>), Error>> {
        if let Some(error) = &self.ended {
            return Some(Err(error.clone()));
        }
        if self.role == Role::Server {
            return Some(Err(Error::Finished));
        }
        if self.slots.len() >= MAX_STREAMS {
            return None;
        }
        let Some(id) = self.newest.checked_add(1) else { return Some(Err(Error::Closed)) };
        self.newest = id;
        let slot = Slot::new(Some(Frame::Open));
        let signals = Arc::clone(&slot.signals);
        self.slots.insert(id, slot);
        self.settle(id);
        Some(Ok((id, signals)))
    }

    /// The oldest stream that nobody has accepted yet; `None` while there is none.
    pub(super) fn accept(&mut self) -> Option<Result<(u32, Arc<Signals>), Error>> {
        if let Some(id) = self.arrivals.pop_front() {
            let slot = self.slots.get(&id).expect("what arrived is kept until it is accepted");
            return Some(Ok((id, Arc::clone(&slot.signals))));
        }
        self.ended.clone().map(Err)
    }

    /// Does something with a stream that is held, then lets it write what it wants.
    pub(super) fn with<T>(&mut self, id: u32, action: impl FnOnce(&mut Slot) -> T) -> T {
        let value = action(self.slots.get_mut(&id).expect("a held stream has its slot"));
        self.settle(id);
        value
    }

    /// Checks a header before its payload is read.
    pub(super) fn expect(&self, header: &Header) -> Result<(), Violation> {
        match self.slots.get(&header.stream) {
            Some(slot) if header.is_data() => slot.expect(header.length()),
            _ => Ok(()),
        }
    }

    pub(super) fn receive(&mut self, id: u32, frame: Frame) -> Result<(), Violation> {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.receive(frame)?;
            let given_up = slot.is_reset();
            if given_up && let Some(place) = self.arrivals.iter().position(|other| *other == id) {
                // Nobody has seen it, and nobody needs to.
                self.arrivals.remove(place);
                slot.release();
            }
            self.settle(id);
            return Ok(());
        }
        if frame == Frame::Open && id > self.newest {
            return self.receive_open(id);
        }
        if id > self.newest || frame == Frame::Open {
            return Err(Violation::Stream);
        }
        self.tolerance = self.tolerance.checked_sub(1).ok_or(Violation::Flood)?;
        Ok(())
    }

    fn receive_open(&mut self, id: u32) -> Result<(), Violation> {
        if self.role == Role::Client || id != self.newest + 1 {
            return Err(Violation::Stream);
        }
        self.newest = id;
        let open = self.slots.values().filter(|slot| !slot.is_over()).count();
        if open < MAX_STREAMS && self.slots.len() < 2 * MAX_STREAMS {
            self.slots.insert(id, Slot::new(None));
            self.arrivals.push_back(id);
            return Ok(());
        }
        self.refused += 1;
        if self.refused > MAX_REFUSED {
            return Err(Violation::Flood);
        }
        self.refusals.push_back(id);
        // It may have sent a whole window before it hears.
        self.tolerance += WINDOW / FRAME_COST + LATE_FRAMES;
        Ok(())
    }

    /// The next frame to send, each stream in turn.
    pub(super) fn next(&mut self) -> Option<(u32, Frame)> {
        if let Some(id) = self.refusals.pop_front() {
            return Some((id, Frame::Reset));
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(slot) = self.slots.get_mut(&id) else { continue };
            slot.ready = false;
            let frame = slot.next();
            self.settle(id);
            if let Some(frame) = frame {
                return Some((id, frame));
            }
        }
        None
    }

    pub(super) fn wants_to_write(&self) -> bool {
        !self.ready.is_empty() || !self.refusals.is_empty()
    }

    #[cfg(test)]
    pub(super) fn streams(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.slots.len() < MAX_STREAMS
    }

    /// Ends the connection, the first reason counts.
    pub(super) fn end(&mut self, reason: Error) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(reason);
        self.ready.clear();
        self.refusals.clear();
        for slot in self.slots.values_mut() {
            slot.disconnect();
        }
        self.slots.retain(|_, slot| slot.held);
    }

    /// Queues a stream that wants to write, or forgets one that is over.
    fn settle(&mut self, id: u32) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        if self.ended.is_none() && slot.wants_to_write() && !slot.ready {
            slot.ready = true;
            self.ready.push_back(id);
        }
        if !slot.held && (slot.is_over() || self.ended.is_some()) {
            self.slots.remove(&id);
            if self.tolerance < MAX_STREAMS * LATE_FRAMES {
                self.tolerance += LATE_FRAMES;
            }
        }
    }
}
