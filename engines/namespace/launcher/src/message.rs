//! One JSON value and some descriptors, as one message on a `SOCK_SEQPACKET` socket.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
};

use rustix::{
    cmsg_space,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};
use serde::{Serialize, de::DeserializeOwned};

use crate::MAX_PLAN;

/// The most descriptors in a message.
const MOST: usize = 192;

/// Sends a value and copies of descriptors.
pub fn send(
    socket: BorrowedFd<'_>,
    value: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(value)?;
    if bytes.len() > MAX_PLAN || descriptors.len() > MOST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too long a message"));
    }
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a value and descriptors; none if the other side has closed.
pub fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; MAX_PLAN];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too long a message"));
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    let value = serde_json::from_slice(bytes.get(..received.bytes).unwrap_or_default())?;
    Ok(Some((value, descriptors)))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn a_value_and_its_descriptors_arrive_together() {
        let (one, two) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        send(one.as_fd(), &vec![1, 2, 3], &[one.as_fd(), two.as_fd()]).unwrap();
        drop(one);
        let (value, descriptors) = receive::<Vec<u8>>(two.as_fd()).unwrap().unwrap();
        assert_eq!((value, descriptors.len()), (vec![1, 2, 3], 2));
        drop(descriptors);
        assert!(receive::<Vec<u8>>(two.as_fd()).unwrap().is_none());
    }
}
