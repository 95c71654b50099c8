//! Two ends over a pipe in memory, and one end against a peer that breaks the rules.

mod honest;
mod hostile;

use std::{future::Future, time::Duration};

use bytes::Bytes;
use tokio::{io::DuplexStream, task::JoinSet};

use super::{Error, MAX_MESSAGE, MAX_STREAMS, Mux, Stream};

#[derive(Clone, PartialEq, prost::Message)]
struct Note {
    #[prost(bytes = "bytes", tag = "1")]
    text: Bytes,
}

fn note(text: impl Into<Bytes>) -> Note {
    Note { text: text.into() }
}

/// Fails rather than hangs.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(1), what).await.expect("within a minute")
}

/// A pipe narrow enough that nothing fits in it whole.
fn pipe() -> (DuplexStream, DuplexStream) {
    tokio::io::duplex(1000)
}

fn pair() -> (Mux, Mux) {
    let (near, far) = pipe();
    (Mux::client(near), Mux::server(far))
}

async fn echo(stream: Stream) {
    while let Ok(Some(message)) = stream.recv::<Note>().await {
        if stream.send(&message).await.is_err() {
            return;
        }
    }
    stream.finish();
}

fn serve_echo(server: Mux) {
    tokio::spawn(async move {
        let mut calls = JoinSet::new();
        while let Some(stream) = server.accept().await {
            calls.spawn(echo(stream));
            while calls.try_join_next().is_some() {}
        }
    });
}

async fn call(client: &Mux, message: &Note) -> Option<Note> {
    let stream = client.open().await.unwrap();
    stream.send(message).await.unwrap();
    stream.finish();
    let answer = stream.recv().await.unwrap();
    assert!(stream.recv::<Note>().await.unwrap().is_none());
    answer
}

#[tokio::test]
async fn a_message_comes_back_as_it_was() {
    let (client, server) = pair();
    serve_echo(server);

    for text in ["", "one", "two"] {
        assert_eq!(soon(call(&client, &note(text))).await, Some(note(text)));
    }
}

#[tokio::test]
async fn a_message_may_be_longer_than_a_frame_and_than_a_window() {
    let (client, server) = pair();
    serve_echo(server);
    let text: Vec<u8> = (0..1_000_000u32).map(|n| n.to_le_bytes()[0]).collect();

    assert_eq!(soon(call(&client, &note(text.clone()))).await, Some(note(text)));
}

#[tokio::test]
async fn a_message_beyond_the_limit_is_not_sent() {
    let (client, _server) = pair();
    let stream = client.open().await.unwrap();

    let error = stream.send(&note(vec![0; MAX_MESSAGE])).await.unwrap_err();

    assert!(matches!(error, Error::TooLong), "{error}");
}

#[tokio::test]
async fn more_streams_than_may_be_open_wait_for_their_turn() {
    let (client, server) = pair();
    serve_echo(server);

    let mut calls = JoinSet::new();
    for n in 0..3 * MAX_STREAMS {
        let client = client.clone();
        calls.spawn(async move {
            let text = format!("call {n}").repeat(50);
            assert_eq!(call(&client, &note(text.clone())).await, Some(note(text)));
        });
    }

    while let Some(done) = soon(calls.join_next()).await {
        done.unwrap();
    }
    assert!(!client.is_closed());
}

#[tokio::test]
async fn streams_dropped_at_once_make_room_again() {
    let (client, server) = pair();
    serve_echo(server);

    for _ in 0..4 * MAX_STREAMS {
        let stream = soon(client.open()).await.unwrap();
        stream.send(&note("never read")).await.unwrap();
    }

    assert_eq!(soon(call(&client, &note("last"))).await, Some(note("last")));
}

#[tokio::test]
async fn a_stream_nobody_reads_stops_its_sender_and_no_one_else() {
    let (client, server) = pair();
    let stalled = client.open().await.unwrap();
    let flood = tokio::spawn(async move {
        let mut sent = 0usize;
        loop {
            match stalled.send(&note(vec![7; 10_000])).await {
                Ok(()) => sent += 1,
                Err(error) => return (sent, error),
            }
        }
    });
    let unread = soon(server.accept()).await.unwrap();
    serve_echo(server.clone());

    for n in 0..100 {
        let text = vec![n; 5_000];
        assert_eq!(soon(call(&client, &note(text.clone()))).await, Some(note(text)));
    }

    assert!(!flood.is_finished());
    drop(unread);
    let (sent, error) = soon(flood).await.unwrap();
    assert!(matches!(error, Error::Reset), "{error}");
    assert!(sent * 10_000 <= super::WINDOW, "{sent} messages were taken unread");
}

#[tokio::test]
async fn a_finished_side_can_still_read() {
    let (client, server) = pair();
    let near = client.open().await.unwrap();
    near.send(&note("question")).await.unwrap();
    near.finish();
    let far = soon(server.accept()).await.unwrap();

    assert_eq!(soon(far.recv()).await.unwrap(), Some(note("question")));
    assert_eq!(soon(far.recv::<Note>()).await.unwrap(), None);
    for _ in 0..100 {
        far.send(&note("answer")).await.unwrap();
    }
    far.finish();

    for _ in 0..100 {
        assert_eq!(soon(near.recv()).await.unwrap(), Some(note("answer")));
    }
    assert_eq!(soon(near.recv::<Note>()).await.unwrap(), None);
    let late = near.send(&note("more")).await.unwrap_err();
    assert!(matches!(late, Error::Finished), "{late}");
}

#[tokio::test]
async fn a_dropped_stream_is_reset() {
    let (client, server) = pair();
    let near = client.open().await.unwrap();
    near.send(&note("hello")).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    assert_eq!(soon(far.recv()).await.unwrap(), Some(note("hello")));

    drop(near);

    let error = soon(far.recv::<Note>()).await.unwrap_err();
    assert!(matches!(error, Error::Reset), "{error}");
    let error = far.send(&note("x")).await.unwrap_err();
    assert!(matches!(error, Error::Reset), "{error}");
}

#[tokio::test]
async fn an_answer_arrives_although_its_sender_reads_no_more() {
    let (client, server) = pair();
    let near = client.open().await.unwrap();
    near.send(&note("upload")).await.unwrap();
    let far = soon(server.accept()).await.unwrap();

    far.send(&note(vec![1; 100_000])).await.unwrap();
    far.finish();
    drop(far);

    assert_eq!(soon(near.recv()).await.unwrap(), Some(note(vec![1; 100_000])));
    assert_eq!(soon(near.recv::<Note>()).await.unwrap(), None);
    let refused = async {
        loop {
            if let Err(error) = near.send(&note("part")).await {
                return error;
            }
        }
    };
    let error = soon(refused).await;
    assert!(matches!(error, Error::Reset), "{error}");
}

#[tokio::test]
async fn reading_can_be_given_up_and_taken_up_again() {
    let (client, server) = pair();
    let near = client.open().await.unwrap();
    let far = tokio::spawn(async move {
        let far = server.accept().await.unwrap();
        far.send(&note(vec![3; 700_000])).await.unwrap();
        far.finish();
        server.closed().await
    });

    let mut tries = 0;
    let message = loop {
        tries += 1;
        let once = tokio::time::timeout(Duration::from_micros(50), near.recv::<Note>());
        if let Ok(message) = once.await {
            break message.unwrap();
        }
        assert!(tries < 1_000_000);
    };

    assert_eq!(message, Some(note(vec![3; 700_000])));
    drop((near, client));
    soon(far).await.unwrap();
}

#[tokio::test]
async fn half_a_message_ends_its_stream_only() {
    let (client, server) = pair();
    let near = client.open().await.unwrap();
    let whole = note(vec![9; 1_000_000]);
    let far = soon(server.accept());
    let far = tokio::select! {
        biased;
        _ = near.send(&whole) => unreachable!("it is larger than the window"),
        far = far => far.unwrap(),
    };

    let error = near.send(&note("next")).await.unwrap_err();
    assert!(matches!(error, Error::Finished), "{error}");
    near.finish();

    let error = soon(far.recv::<Note>()).await.unwrap_err();
    assert!(matches!(error, Error::Reset), "{error}");
    serve_echo(server);
    assert_eq!(soon(call(&client, &note("fine"))).await, Some(note("fine")));
}

#[tokio::test]
async fn the_connection_ends_with_its_last_handle() {
    let (client, server) = pair();
    let near = client.open().await.unwrap();
    drop(client);
    let far = soon(server.accept()).await.unwrap();
    near.send(&note("still there")).await.unwrap();
    assert_eq!(soon(far.recv()).await.unwrap(), Some(note("still there")));

    drop(near);

    assert!(matches!(soon(server.closed()).await, Error::Closed));
    assert!(soon(server.accept()).await.is_none());
    assert!(far.send(&note("x")).await.is_err());
}

#[tokio::test]
async fn closing_ends_every_call() {
    let (client, server) = pair();
    let near = client.open().await.unwrap();
    let far = soon(server.accept()).await.unwrap();

    client.close();

    assert!(matches!(soon(near.recv::<Note>()).await, Err(Error::Closed)));
    assert!(matches!(client.open().await, Err(Error::Closed)));
    assert!(matches!(soon(server.closed()).await, Error::Closed));
    assert!(soon(far.recv::<Note>()).await.is_err());
}
