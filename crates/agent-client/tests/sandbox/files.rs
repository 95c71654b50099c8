//! Files of an agent that does not keep to the rules.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::{Arc, Mutex},
};

use atoll_agent_protocol::{
    message::{Done, Entry, Failure, FailureKind, Upload, request::Call, response::Answer, upload},
    mux::Stream,
};
use atoll_engine::{ByteStream, Error, ErrorKind, Files as _, Kind};
use bytes::Bytes;
use futures_util::{StreamExt as _, future::BoxFuture, stream};

use crate::stage::{Place, Script, honest_but, say};

/// An honest agent, but for these answers to whatever is asked of files.
fn answering(answers: Vec<Answer>) -> Arc<Place> {
    let script = Arc::<Script>::default();
    honest_but(&script, move |call, stream| match call {
        Call::ReadFile(_) | Call::ListDirectory(_) | Call::Stat(_) => {
            let answers = answers.clone();
            Break(Box::pin(async move {
                for answer in answers {
                    say(&stream, answer).await;
                }
                stream.finish();
            }))
        }
        call => Continue((call, stream)),
    })
}

fn named(name: &[u8]) -> Answer {
    Answer::Entry(Entry { name: name.to_vec(), mode: 0o100_644, size: 5, ..Entry::default() })
}

fn chunk(text: &'static [u8]) -> Answer {
    Answer::Chunk(Bytes::from_static(text))
}

fn content(parts: Vec<Result<&'static [u8], Error>>) -> ByteStream {
    stream::iter(parts.into_iter().map(|part| part.map(Bytes::from_static))).boxed()
}

#[tokio::test]
async fn a_file_is_no_longer_than_was_said() {
    let cases = [
        (vec![chunk(b"he"), chunk(b"llo")], Some(5)),
        (vec![chunk(b"he")], Some(2)),
        (vec![chunk(b"hello"), chunk(b"!")], None),
        (vec![chunk(b"hello!")], None),
        (vec![chunk(b"")], None),
        (vec![named(b"again")], None),
    ];
    for (chunks, length) in cases {
        let answers = [vec![named(b"file")], chunks.clone()].concat();
        let sandbox = answering(answers).connect_to().await.unwrap();

        let parts: Vec<_> = sandbox.read("file").await.unwrap().collect().await;

        let whole: Result<Vec<Bytes>, Error> = parts.into_iter().collect();
        assert_eq!(whole.ok().map(|parts| parts.concat().len()), length, "{chunks:?}");
    }
}

#[tokio::test]
async fn a_listing_names_nothing_outside_its_directory() {
    for name in [&b"../up"[..], b"..", b".", b"", b"a/b", b"a\0"] {
        let answers = vec![named(b"fine"), named(name), Answer::Done(Done::default())];
        let sandbox = answering(answers).connect_to().await.unwrap();

        let error = sandbox.list("d").await.unwrap_err();

        assert_eq!(error.kind(), ErrorKind::Internal, "{name:?}");
    }
}

#[tokio::test]
async fn a_listing_is_told_as_it_is() {
    let answers = vec![named(b"a"), named(b"b\xff"), Answer::Done(Done { truncated: true })];
    let sandbox = answering(answers).connect_to().await.unwrap();

    let listing = sandbox.list("d").await.unwrap();

    let names: Vec<_> = listing.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a", "b\u{fffd}"]);
    assert_eq!(listing.entries[0].kind, Kind::File);
    assert!(listing.truncated);
}

#[tokio::test]
async fn a_listing_that_breaks_off_is_an_error() {
    let sandbox = answering(vec![named(b"a")]).connect_to().await.unwrap();

    assert!(sandbox.list("d").await.is_err());
}

#[tokio::test]
async fn an_endless_listing_is_cut_off() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::ListDirectory(_) => Break(Box::pin(async move {
            let entry = Entry { name: vec![b'x'; 200_000], ..Entry::default() };
            let answer = Some(Answer::Entry(entry));
            let response = atoll_agent_protocol::message::Response { answer };
            while stream.send(&response).await.is_ok() {}
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();

    let error = sandbox.list("d").await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
}

#[tokio::test]
async fn paths_that_no_kernel_takes_are_not_sent() {
    let sandbox = answering(vec![named(b"a")]).connect_to().await.unwrap();

    for path in ["", "a\0b", &"x".repeat(100_000)] {
        let errors = [
            sandbox.read(path).await.err(),
            sandbox.write(path, content(vec![])).await.err(),
            sandbox.list(path).await.err(),
            sandbox.stat(path).await.err(),
            sandbox.make_directory(path).await.err(),
            sandbox.rename(path, "b").await.err(),
            sandbox.rename("b", path).await.err(),
            sandbox.copy("b", path).await.err(),
            sandbox.remove(path).await.err(),
            sandbox.set_mode(path, 0o644).await.err(),
            sandbox.set_mode("b", 0o1000).await.err(),
        ];
        for error in errors {
            assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Invalid));
        }
    }
}

/// What an agent received of an upload, and whether it was told that this was all.
type Received = Arc<Mutex<(Vec<u8>, bool)>>;

fn receiving(received: &Received) -> Arc<Place> {
    let script = Arc::<Script>::default();
    let received = Arc::clone(received);
    honest_but(&script, move |call, stream| match call {
        Call::WriteFile(_) => Break(receive(stream, Arc::clone(&received))),
        call => Continue((call, stream)),
    })
}

fn receive(stream: Stream, received: Received) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        while let Ok(Some(Upload { part: Some(part) })) = stream.recv().await {
            match part {
                upload::Part::Chunk(chunk) => received.lock().unwrap().0.extend_from_slice(&chunk),
                upload::Part::End(_) => {
                    received.lock().unwrap().1 = true;
                    say(&stream, Answer::Done(Done::default())).await;
                }
            }
        }
        stream.finish();
    })
}

#[tokio::test]
async fn a_file_arrives_whole_and_says_so() {
    let received = Received::default();
    let sandbox = receiving(&received).connect_to().await.unwrap();
    let large: &'static [u8] = vec![42; 3 << 20].leak();

    sandbox.write("f", content(vec![Ok(b"a"), Ok(b""), Ok(large)])).await.unwrap();

    let (bytes, whole) = received.lock().unwrap().clone();
    assert_eq!((bytes.len(), whole), (large.len() + 1, true));
}

#[tokio::test]
async fn content_that_fails_is_never_called_whole() {
    let received = Received::default();
    let sandbox = receiving(&received).connect_to().await.unwrap();
    let broken = content(vec![Ok(b"a"), Err(Error::invalid("the client is gone"))]);

    let error = sandbox.write("f", broken).await.unwrap_err();

    assert_eq!(error.message(), "the client is gone");
    assert!(!received.lock().unwrap().1);
}

#[tokio::test]
async fn an_agent_that_takes_no_more_is_asked_why() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::WriteFile(_) => Break(Box::pin(async move {
            let kind = FailureKind::Exhausted.into();
            let message = "no room".to_owned();
            say(&stream, Answer::Error(Failure { kind, message })).await;
            stream.finish();
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();
    let endless = stream::repeat_with(|| Ok(Bytes::from_static(&[0; 10_000]))).boxed();

    let error = sandbox.write("f", endless).await.unwrap_err();

    assert_eq!((error.kind(), error.message()), (ErrorKind::Exhausted, "no room"));
}
