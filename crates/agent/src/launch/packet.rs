//! What agent and keeper say to each other: small packets that are never split.

use std::os::fd::AsFd;

use rustix::{
    io::{Errno, read},
    net::{SendFlags, send},
};

/// From the agent to a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// End the command and every descendant; answered by [`Report::Killed`].
    Kill,
    /// Send the command itself a signal; answered by [`Report::Signalled`], in order.
    Signal(i32),
}

/// From a keeper to the agent. The end of the connection without [`Report::Gone`] means that
/// the keeper was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command's own end, as `wait` told it, and whether the keeper was killing by then.
    Exited { status: i32, killing: bool },
    /// Whether nothing is left.
    Killed(bool),
    /// Whether there was still a process to signal.
    Signalled(bool),
    /// Nothing is left; the keeper ends.
    Gone,
}

type Packet = [u8; 6];

impl Order {
    pub(crate) fn to_packet(self) -> Packet {
        match self {
            Self::Kill => pack(1, 0, false),
            Self::Signal(signal) => pack(2, signal, false),
        }
    }

    fn of_packet(packet: Packet) -> Option<Self> {
        match unpack(packet) {
            (1, ..) => Some(Self::Kill),
            (2, signal, _) => Some(Self::Signal(signal)),
            _ => None,
        }
    }

    /// The next order; None when the agent is gone.
    pub(crate) fn receive(socket: impl AsFd) -> Result<Option<Self>, Errno> {
        let mut packet = Packet::default();
        let count = read(socket, &mut packet)?;
        Ok(if count == packet.len() { Self::of_packet(packet) } else { None })
    }
}

impl Report {
    /// Sends it. That the agent is gone shows elsewhere.
    pub(crate) fn send(self, socket: impl AsFd) {
        let packet = match self {
            Self::Exited { status, killing } => pack(1, status, killing),
            Self::Killed(done) => pack(2, 0, done),
            Self::Signalled(done) => pack(3, 0, done),
            Self::Gone => pack(4, 0, false),
        };
        while send(&socket, &packet, SendFlags::NOSIGNAL) == Err(Errno::INTR) {}
    }

    /// The next report; None when the keeper is gone.
    pub(crate) fn receive(socket: impl AsFd) -> Result<Option<Self>, Errno> {
        let mut packet = Packet::default();
        let count = match read(&socket, &mut packet) {
            // It ended with an order unread, which is told once, before what it had sent.
            Err(Errno::CONNRESET) => read(&socket, &mut packet)?,
            result => result?,
        };
        Ok(match (count == packet.len()).then(|| unpack(packet)) {
            Some((1, status, killing)) => Some(Self::Exited { status, killing }),
            Some((2, _, done)) => Some(Self::Killed(done)),
            Some((3, _, done)) => Some(Self::Signalled(done)),
            Some((4, ..)) => Some(Self::Gone),
            _ => None,
        })
    }
}

fn pack(tag: u8, number: i32, flag: bool) -> Packet {
    let [a, b, c, d] = number.to_le_bytes();
    [tag, a, b, c, d, u8::from(flag)]
}

fn unpack([tag, a, b, c, d, flag]: Packet) -> (u8, i32, bool) {
    (tag, i32::from_le_bytes([a, b, c, d]), flag != 0)
}
