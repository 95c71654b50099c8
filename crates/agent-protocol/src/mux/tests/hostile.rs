//! Peers that break the rules, byte by byte.

use bytes::Bytes;
use proptest::prelude::*;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    runtime::Builder,
};

use super::{
    super::{
        Error, FRAME_COST, MAX_MESSAGE, MAX_STREAMS, Mux, Violation, WINDOW,
        state::{Role, State},
    },
    Note, note, soon,
};
use crate::frame::{Frame, HEADER, Header, MAX_PAYLOAD};

fn bytes(frames: impl IntoIterator<Item = (u32, Frame)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (id, frame) in frames {
        frame.encode(id, &mut bytes);
    }
    bytes
}

fn data(length: usize) -> Frame {
    Frame::Data { payload: Bytes::from(vec![0; length]), more: false }
}

fn part(length: usize) -> Frame {
    Frame::Data { payload: Bytes::from(vec![0; length]), more: true }
}

/// What a server makes of these frames.
async fn verdict(frames: impl IntoIterator<Item = (u32, Frame)>) -> Error {
    let (mut peer, io) = tokio::io::duplex(1 << 20);
    let server = Mux::server(io);
    let bytes = bytes(frames);
    // The server may well hang up before it has it all.
    let feed = async move {
        let _ = peer.write_all(&bytes).await;
        drop(peer);
    };
    let ((), error) = soon(async { tokio::join!(feed, server.closed()) }).await;
    error
}

fn broke(error: &Error) -> Option<Violation> {
    match error {
        Error::Protocol(violation) => Some(*violation),
        _ => None,
    }
}

#[tokio::test]
async fn each_broken_rule_is_named() {
    let cases = [
        (vec![(1, data(1))], Violation::Stream),
        (vec![(2, Frame::Open)], Violation::Stream),
        (vec![(1, Frame::Open), (1, Frame::Open)], Violation::Stream),
        (vec![(1, Frame::Open), (1, Frame::Credit(1))], Violation::Credit),
        (vec![(1, Frame::Open), (1, Frame::Credit(0))], Violation::Credit),
        (vec![(1, Frame::Open), (1, Frame::Credit(u32::MAX))], Violation::Credit),
        (vec![(1, Frame::Open), (1, Frame::Finish), (1, data(1))], Violation::AfterEnd),
        (vec![(1, Frame::Open), (1, Frame::Finish), (1, Frame::Finish)], Violation::AfterEnd),
        (vec![(1, Frame::Open), (1, part(1)), (1, Frame::Finish)], Violation::CutShort),
    ];
    for (frames, violation) in cases {
        let told = verdict(frames.clone()).await;
        assert_eq!(broke(&told), Some(violation), "{frames:?}: {told}");
    }
}

#[tokio::test]
async fn more_than_the_window_ends_the_connection() {
    let frames = (0..5).map(|_| (1, data(MAX_PAYLOAD)));
    let error = verdict([(1, Frame::Open)].into_iter().chain(frames)).await;

    assert_eq!(broke(&error), Some(Violation::Window), "{error}");
}

#[tokio::test]
async fn empty_frames_are_not_free() {
    let frames = (0..=WINDOW / FRAME_COST).map(|_| (1, data(0)));
    let error = verdict([(1, Frame::Open)].into_iter().chain(frames)).await;

    assert_eq!(broke(&error), Some(Violation::Window), "{error}");
}

#[tokio::test]
async fn a_flood_of_openings_is_refused_and_then_ends_the_connection() {
    let (mut peer, io) = tokio::io::duplex(1 << 20);
    let server = Mux::server(io);
    let most = u32::try_from(MAX_STREAMS).unwrap();
    peer.write_all(&bytes((1..=most + 3).map(|id| (id, Frame::Open)))).await.unwrap();

    for id in most + 1..=most + 3 {
        assert_eq!(soon(next(&mut peer)).await, (id, Frame::Reset));
    }
    assert!(!server.is_closed());
    peer.write_all(&bytes((most + 4..most + 2000).map(|id| (id, Frame::Open)))).await.unwrap();

    let error = soon(server.closed()).await;
    assert_eq!(broke(&error), Some(Violation::Flood), "{error}");
}

#[tokio::test]
async fn a_flood_of_resets_ends_the_connection() {
    let frames = (0..5000).map(|_| (1, Frame::Reset));
    let error = verdict([(1, Frame::Open)].into_iter().chain(frames)).await;

    let broken = broke(&error);
    assert!(matches!(broken, Some(Violation::Flood | Violation::AfterEnd)), "{error}");
}

#[tokio::test]
async fn streams_opened_and_reset_unseen_do_not_pile_up() {
    let (mut peer, io) = tokio::io::duplex(1 << 16);
    let server = Mux::server(io);
    for id in 1..=2000u32 {
        peer.write_all(&bytes([(id, Frame::Open), (id, Frame::Reset)])).await.unwrap();
        assert_eq!(soon(next(&mut peer)).await, (id, Frame::Reset));
    }
    peer.write_all(&bytes([(2001, Frame::Open), (2001, data(0))])).await.unwrap();

    let stream = soon(server.accept()).await.unwrap();

    assert_eq!(soon(stream.recv::<Note>()).await.unwrap(), Some(note("")));
}

#[tokio::test]
async fn a_client_takes_no_openings() {
    let (mut peer, io) = tokio::io::duplex(1 << 16);
    let client = Mux::client(io);
    peer.write_all(&bytes([(1, Frame::Open)])).await.unwrap();

    let error = soon(client.closed()).await;

    assert_eq!(broke(&error), Some(Violation::Stream), "{error}");
}

#[tokio::test]
async fn an_endless_message_ends_the_connection_at_its_limit() {
    for limit in [100_000, MAX_MESSAGE] {
        let (mut peer, io) = tokio::io::duplex(1 << 20);
        let client = Mux::client(io);
        let stream = client.open().await.unwrap();
        stream.set_limit(limit);
        let flood = async move {
            assert_eq!(next(&mut peer).await, (1, Frame::Open));
            let mut credit = WINDOW;
            loop {
                while credit < FRAME_COST + 10_000 {
                    match next(&mut peer).await {
                        (1, Frame::Credit(more)) => credit += more as usize,
                        other => panic!("{other:?}"),
                    }
                }
                credit -= FRAME_COST + 10_000;
                if peer.write_all(&bytes([(1, part(10_000))])).await.is_err() {
                    return;
                }
            }
        };
        let flood = tokio::spawn(flood);

        let error = soon(stream.recv::<Note>()).await.unwrap_err();

        assert_eq!(broke(&error), Some(Violation::MessageLength), "{error}");
        flood.abort();
    }
}

#[tokio::test]
async fn bytes_that_are_no_message_fail_their_stream() {
    let (mut peer, io) = tokio::io::duplex(1 << 16);
    let server = Mux::server(io);
    let payload = Bytes::from_static(&[0xff; 20]);
    let frames = [(1, Frame::Open), (1, Frame::Data { payload, more: false })];
    peer.write_all(&bytes(frames)).await.unwrap();
    let stream = soon(server.accept()).await.unwrap();

    let error = soon(stream.recv::<Note>()).await.unwrap_err();

    assert!(matches!(error, Error::Malformed(_)), "{error}");
    assert!(!server.is_closed());
}

#[tokio::test]
async fn a_frame_cut_off_is_no_clean_end() {
    let whole = bytes([(1, Frame::Open), (1, data(100))]);
    for cut in [3, HEADER + 5, whole.len() - 1] {
        let (mut peer, io) = tokio::io::duplex(1 << 16);
        let server = Mux::server(io);
        peer.write_all(&whole[..cut]).await.unwrap();
        drop(peer);
        assert!(matches!(soon(server.closed()).await, Error::Io(_)), "{cut}");
    }
}

/// The next frame a well-behaved peer would see.
async fn next(peer: &mut DuplexStream) -> (u32, Frame) {
    let mut head = [0; HEADER];
    peer.read_exact(&mut head).await.unwrap();
    let header = Header::decode(head).unwrap();
    let mut payload = vec![0; header.length()];
    peer.read_exact(&mut payload).await.unwrap();
    (header.stream, header.frame(payload.into()).unwrap())
}

fn any_frame() -> impl Strategy<Value = (u32, Frame)> {
    let frame = prop_oneof![
        4 => Just(Frame::Open),
        4 => (0..3000usize, any::<bool>()).prop_map(|(length, more)| Frame::Data {
            payload: Bytes::from(vec![0; length]),
            more,
        }),
        1 => (0..3000u32).prop_map(Frame::Credit),
        1 => Just(Frame::Finish),
        1 => Just(Frame::Reset),
    ];
    (1..8u32, frame)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_end_either_side_with_an_error(noise: Vec<u8>, client: bool) {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (mut peer, io) = tokio::io::duplex(1 << 16);
            let mux = if client { Mux::client(io) } else { Mux::server(io) };
            let _ = peer.write_all(&noise).await;
            drop(peer);
            soon(mux.closed()).await;
        });
    }

    #[test]
    fn no_order_of_frames_makes_the_books_wrong(frames in prop::collection::vec(any_frame(), 0..200)) {
        let mut state = State::new(Role::Server);
        let mut accepted = Vec::new();
        for (id, frame) in frames {
            if state.receive(id, frame).is_err() {
                break;
            }
            while let Some(Ok((id, _))) = state.accept() {
                accepted.push(id);
            }
            if accepted.len() > 3 {
                let id = accepted.remove(0);
                state.with(id, |slot| { while let Some(Ok(Some(_))) = slot.read() {} });
                state.with(id, |slot| { slot.finish(); slot.release(); });
            }
            while state.next().is_some() {}
        }
        for id in accepted {
            state.with(id, super::super::slot::Slot::release);
        }
        while state.next().is_some() {}
        prop_assert!(!state.wants_to_write());
    }
}
