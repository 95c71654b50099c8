//! One stream's books: what was sent, received, allowed and ended.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use tokio::sync::Notify;

use super::{Error, FRAME_COST, MAX_MESSAGE, Violation, WINDOW};
use crate::frame::{Frame, MAX_PAYLOAD};

/// How far one direction of a stream has come. Only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Open,
    Finished,
    /// Finished in order, then reset.
    Left,
    Reset,
}

/// Told when a stream can be read or written again, or never more.
#[derive(Debug, Default)]
pub(super) struct Signals {
    pub(super) readable: Notify,
    pub(super) writable: Notify,
}

pub(super) struct Slot {
    pub(super) signals: Arc<Signals>,
    /// Someone has, or will have, the [`Stream`](super::Stream).
    pub(super) held: bool,
    /// Waits for its turn to write.
    pub(super) ready: bool,
    /// Most bytes of a message that is received.
    pub(super) limit: usize,
    /// To be sent; what is data here is paid for.
    outgoing: VecDeque<Frame>,
    /// What the peer lets us send.
    credit: usize,
    /// A message is half sent.
    sending: bool,
    local: End,
    /// Received, not yet read.
    incoming: VecDeque<(Bytes, bool)>,
    /// What we let the peer send.
    window: usize,
    /// Read, and not yet allowed again.
    due: usize,
    /// The parts already read of a message not yet whole.
    partial: Vec<u8>,
    /// Received so far of the message not yet wholly received; none between messages.
    arriving: Option<usize>,
    remote: End,
}

fn cost(length: usize) -> usize {
    FRAME_COST + length
}

impl Slot {
    pub(super) fn new(first: Option<Frame>) -> Self {
        Self {
            signals: Arc::default(),
            held: true,
            ready: false,
            limit: MAX_MESSAGE,
            outgoing: first.into_iter().collect(),
            credit: WINDOW,
            sending: false,
            local: End::Open,
            incoming: VecDeque::new(),
            window: WINDOW,
            due: 0,
            partial: Vec::new(),
            arriving: None,
            remote: End::Open,
        }
    }

    /// Neither side will say anything more.
    pub(super) fn is_over(&self) -> bool {
        self.remote > End::Open && self.local > End::Open && self.outgoing.is_empty()
    }

    /// The peer reads no more.
    pub(super) fn is_reset(&self) -> bool {
        self.remote >= End::Left
    }

    pub(super) fn wants_to_write(&self) -> bool {
        !self.outgoing.is_empty() || self.owes_credit()
    }

    fn owes_credit(&self) -> bool {
        let heard = self.held && self.local < End::Reset && self.remote == End::Open;
        heard && self.due >= WINDOW / 4
    }

    /// The next frame in its turn.
    pub(super) fn next(&mut self) -> Option<Frame> {
        // Nothing may be said of a stream before it is opened.
        if self.owes_credit() && self.outgoing.front() != Some(&Frame::Open) {
            self.window += self.due;
            let due = u32::try_from(std::mem::take(&mut self.due)).expect("at most a window");
            return Some(Frame::Credit(due));
        }
        self.outgoing.pop_front()
    }

    /// Checks that so much data may come, before it is read.
    pub(super) fn expect(&self, length: usize) -> Result<(), Violation> {
        if self.remote > End::Open {
            return Err(Violation::AfterEnd);
        }
        if cost(length) > self.window {
            return Err(Violation::Window);
        }
        if self.arriving.unwrap_or(0) + length > self.limit {
            return Err(Violation::MessageLength);
        }
        Ok(())
    }

    pub(super) fn receive(&mut self, frame: Frame) -> Result<(), Violation> {
        match frame {
            Frame::Open => return Err(Violation::Stream),
            Frame::Data { payload, more } => self.receive_data(payload, more)?,
            Frame::Credit(amount) => {
                let credit = self.credit.saturating_add(amount as usize);
                if self.is_reset() {
                    return Err(Violation::AfterEnd);
                }
                if amount == 0 || credit > WINDOW {
                    return Err(Violation::Credit);
                }
                self.credit = credit;
                self.signals.writable.notify_waiters();
            }
            Frame::Finish => {
                if self.remote > End::Open {
                    return Err(Violation::AfterEnd);
                }
                if self.arriving.is_some() {
                    return Err(Violation::CutShort);
                }
                self.remote = End::Finished;
                self.signals.readable.notify_waiters();
            }
            Frame::Reset => self.receive_reset()?,
        }
        Ok(())
    }

    fn receive_data(&mut self, payload: Bytes, more: bool) -> Result<(), Violation> {
        self.expect(payload.len())?;
        self.window -= cost(payload.len());
        self.arriving = more.then(|| self.arriving.unwrap_or(0) + payload.len());
        // What nobody will read is dropped, and never allowed again.
        if self.held && self.local < End::Reset {
            self.incoming.push_back((payload, more));
            self.signals.readable.notify_waiters();
        }
        Ok(())
    }

    fn receive_reset(&mut self) -> Result<(), Violation> {
        self.remote = match self.remote {
            End::Open => {
                self.incoming = VecDeque::new();
                self.partial = Vec::new();
                End::Reset
            }
            End::Finished => End::Left,
            End::Left | End::Reset => return Err(Violation::AfterEnd),
        };
        // What was said may be half a message by now, so it cannot end in order any more.
        let unfinished = self.outgoing.contains(&Frame::Finish);
        self.outgoing.retain(|frame| matches!(frame, Frame::Open | Frame::Reset));
        if unfinished || self.local == End::Open {
            self.reset();
        }
        self.signals.readable.notify_waiters();
        self.signals.writable.notify_waiters();
        Ok(())
    }

    /// The next whole message, none at the end; `None` if there is nothing to say yet.
    pub(super) fn read(&mut self) -> Option<Result<Option<Bytes>, Error>> {
        while let Some((payload, more)) = self.incoming.pop_front() {
            self.due += cost(payload.len());
            if !more && self.partial.is_empty() {
                return Some(Ok(Some(payload)));
            }
            self.partial.extend_from_slice(&payload);
            if !more {
                return Some(Ok(Some(std::mem::take(&mut self.partial).into())));
            }
        }
        match self.remote {
            End::Open => None,
            End::Finished | End::Left => Some(Ok(None)),
            End::Reset => Some(Err(Error::Reset)),
        }
    }

    /// Begins a message; no other may be begun before it is wholly queued.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        if self.is_reset() {
            return Err(Error::Reset);
        }
        if self.local > End::Open || self.sending {
            return Err(Error::Finished);
        }
        self.sending = true;
        Ok(())
    }

    /// Queues as much of `message` as is allowed; true if that was all.
    pub(super) fn write(&mut self, message: &mut Bytes) -> Result<bool, Error> {
        if self.is_reset() {
            return Err(Error::Reset);
        }
        loop {
            let allowed = self.credit.saturating_sub(FRAME_COST).min(MAX_PAYLOAD);
            if self.credit < FRAME_COST || (allowed == 0 && !message.is_empty()) {
                return Ok(false);
            }
            let payload = message.split_to(allowed.min(message.len()));
            self.credit -= cost(payload.len());
            let more = !message.is_empty();
            self.outgoing.push_back(Frame::Data { payload, more });
            if !more {
                self.sending = false;
                return Ok(true);
            }
        }
    }

    /// Says that nothing more will be sent; a message half sent cannot be made whole.
    pub(super) fn finish(&mut self) {
        if self.local > End::Open {
            return;
        }
        if self.sending {
            self.reset();
        } else {
            self.local = End::Finished;
            self.outgoing.push_back(Frame::Finish);
        }
    }

    /// Lets go of the stream, in order if both sides have finished.
    pub(super) fn release(&mut self) {
        self.held = false;
        self.incoming = VecDeque::new();
        self.partial = Vec::new();
        if self.local == End::Open {
            self.outgoing.retain(|frame| matches!(frame, Frame::Open));
        }
        if self.local == End::Open || self.remote == End::Open {
            self.reset();
        }
    }

    fn reset(&mut self) {
        if self.local < End::Reset {
            self.local = End::Reset;
            self.outgoing.push_back(Frame::Reset);
        }
    }

    /// Forgets what can no longer be sent.
    pub(super) fn disconnect(&mut self) {
        self.outgoing = VecDeque::new();
        self.signals.readable.notify_waiters();
        self.signals.writable.notify_waiters();
    }
}
