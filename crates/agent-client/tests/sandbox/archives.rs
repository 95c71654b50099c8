//! Archives of an agent that does not keep to the rules.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
};

use atoll_agent_protocol::message::{
    Done, Entry, Failure, FailureKind, request::Call, response::Answer,
};
use atoll_engine::{Error, ErrorKind, Files as _};
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::stage::{Place, Script, honest_but, say};

/// An honest agent, but for these answers to whoever wants an archive.
fn answering(answers: Vec<Answer>) -> Arc<Place> {
    let script = Arc::<Script>::default();
    honest_but(&script, move |call, stream| match call {
        Call::Pack(_) => {
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

fn begun() -> Answer {
    Answer::Entry(Entry::default())
}

fn chunk(text: &'static [u8]) -> Answer {
    Answer::Chunk(Bytes::from_static(text))
}

fn done() -> Answer {
    Answer::Done(Done::default())
}

#[tokio::test]
async fn an_archive_is_whole_only_if_its_end_is_told() {
    let cases = [
        (vec![chunk(b"he"), chunk(b"llo"), done()], Some(5)),
        (vec![done()], Some(0)),
        (vec![chunk(b"hello")], None),
        (vec![], None),
        (vec![chunk(b""), done()], None),
        (vec![chunk(b"he"), done(), chunk(b"llo")], None),
        (vec![chunk(b"he"), begun(), done()], None),
    ];
    for (answers, length) in cases {
        let place = answering([vec![begun()], answers.clone()].concat());
        let sandbox = place.connect_to().await.unwrap();

        let parts: Vec<_> = sandbox.pack("d").await.unwrap().collect().await;

        let whole: Result<Vec<Bytes>, Error> = parts.into_iter().collect();
        assert_eq!(whole.ok().map(|parts| parts.concat().len()), length, "{answers:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_packed_is_told_before_there_is_an_archive() {
    let failure = Failure { kind: FailureKind::NotFound.into(), message: "no \x1b[2J".to_owned() };
    let sandbox = answering(vec![Answer::Error(failure)]).connect_to().await.unwrap();

    let error = sandbox.pack("d").await.map(drop).unwrap_err();

    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!error.message().contains('\x1b'));
}
