//! The unit on the wire: a fixed header, checked before anything is made for its payload.
//!
//! ```text
//! stream: u32   kind: u8   flags: u8   length: u32   payload: length bytes      (little endian)
//! ```

use bytes::Bytes;

use crate::mux::Violation;

/// Bytes of a header.
pub(crate) const HEADER: usize = 10;
/// Most bytes of a payload.
pub(crate) const MAX_PAYLOAD: usize = 64 << 10;

const OPEN: u8 = 1;
const DATA: u8 = 2;
const CREDIT: u8 = 3;
const FINISH: u8 = 4;
const RESET: u8 = 5;

/// On data: the message goes on in the next frame.
const MORE: u8 = 1;

/// What a frame says of its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Open,
    Data {
        payload: Bytes,
        more: bool,
    },
    /// So much more may be sent.
    Credit(u32),
    /// Nothing more will be sent.
    Finish,
    /// Nothing more will be sent, nor read.
    Reset,
}

/// A header that makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) stream: u32,
    kind: u8,
    more: bool,
    length: usize,
}

impl Header {
    pub(crate) fn decode(bytes: [u8; HEADER]) -> Result<Self, Violation> {
        let [s0, s1, s2, s3, kind, flags, l0, l1, l2, l3] = bytes;
        let stream = u32::from_le_bytes([s0, s1, s2, s3]);
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let fits = match kind {
            OPEN | FINISH | RESET => length == 0,
            CREDIT => length == size_of::<u32>(),
            DATA => length <= MAX_PAYLOAD,
            _ => return Err(Violation::Kind),
        };
        if !fits {
            return Err(Violation::Length);
        }
        if flags & !MORE != 0 || (flags != 0 && kind != DATA) {
            return Err(Violation::Flags);
        }
        if stream == 0 {
            return Err(Violation::Stream);
        }
        Ok(Self { stream, kind, more: flags == MORE, length })
    }

    /// How many bytes follow: at most [`MAX_PAYLOAD`].
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Whether they are a message's.
    pub(crate) fn is_data(&self) -> bool {
        self.kind == DATA
    }

    /// The frame, given its payload.
    pub(crate) fn frame(&self, payload: Bytes) -> Result<Frame, Violation> {
        Ok(match self.kind {
            OPEN => Frame::Open,
            DATA => Frame::Data { payload, more: self.more },
            CREDIT => {
                let amount = payload.as_ref().try_into().map_err(|_| Violation::Length)?;
                Frame::Credit(u32::from_le_bytes(amount))
            }
            FINISH => Frame::Finish,
            _ => Frame::Reset,
        })
    }
}

impl Frame {
    /// Appends the frame as it is sent.
    pub(crate) fn encode(&self, stream: u32, to: &mut Vec<u8>) {
        let credit;
        let (kind, flags, payload): (u8, u8, &[u8]) = match self {
            Self::Open => (OPEN, 0, &[]),
            Self::Data { payload, more } => (DATA, if *more { MORE } else { 0 }, payload),
            Self::Credit(amount) => {
                credit = amount.to_le_bytes();
                (CREDIT, 0, &credit)
            }
            Self::Finish => (FINISH, 0, &[]),
            Self::Reset => (RESET, 0, &[]),
        };
        let length = u32::try_from(payload.len()).expect("a payload is at most MAX_PAYLOAD");
        to.reserve(HEADER + payload.len());
        to.extend_from_slice(&stream.to_le_bytes());
        to.extend_from_slice(&[kind, flags]);
        to.extend_from_slice(&length.to_le_bytes());
        to.extend_from_slice(payload);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_frame() -> impl Strategy<Value = Frame> {
        prop_oneof![
            Just(Frame::Open),
            (proptest::collection::vec(any::<u8>(), 0..300), any::<bool>())
                .prop_map(|(payload, more)| Frame::Data { payload: payload.into(), more }),
            any::<u32>().prop_map(Frame::Credit),
            Just(Frame::Finish),
            Just(Frame::Reset),
        ]
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(stream in 1u32.., frame in any_frame()) {
            let mut bytes = Vec::new();
            frame.encode(stream, &mut bytes);
            let (head, payload) = bytes.split_first_chunk::<HEADER>().unwrap();

            let header = Header::decode(*head).unwrap();

            prop_assert_eq!(header.stream, stream);
            prop_assert_eq!(header.length(), payload.len());
            prop_assert_eq!(header.frame(Bytes::copy_from_slice(payload)), Ok(frame));
        }

        #[test]
        fn no_header_asks_for_more_than_a_payload(bytes: [u8; HEADER]) {
            if let Ok(header) = Header::decode(bytes) {
                prop_assert!(header.length() <= MAX_PAYLOAD);
                prop_assert!(header.stream != 0);
            }
        }
    }

    #[test]
    fn each_wrong_header_is_named() {
        let header = |stream: u32, kind, flags, length: u32| {
            let mut bytes = [0; HEADER];
            bytes[..4].copy_from_slice(&stream.to_le_bytes());
            bytes[4..6].copy_from_slice(&[kind, flags]);
            bytes[6..].copy_from_slice(&length.to_le_bytes());
            Header::decode(bytes)
        };

        assert_eq!(header(1, 0, 0, 0), Err(Violation::Kind));
        assert_eq!(header(1, 6, 0, 0), Err(Violation::Kind));
        assert_eq!(header(0, DATA, 0, 1), Err(Violation::Stream));
        assert_eq!(header(1, DATA, 2, 1), Err(Violation::Flags));
        assert_eq!(header(1, RESET, MORE, 0), Err(Violation::Flags));
        assert_eq!(header(1, OPEN, 0, 1), Err(Violation::Length));
        assert_eq!(header(1, CREDIT, 0, 5), Err(Violation::Length));
        assert_eq!(header(1, DATA, 0, 64 * 1024 + 1), Err(Violation::Length));
        assert_eq!(header(1, DATA, 0, u32::MAX), Err(Violation::Length));
        assert!(header(1, DATA, MORE, 64 * 1024).is_ok());
    }
}
