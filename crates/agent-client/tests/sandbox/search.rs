//! Searches and watches of an agent that does not keep to the rules.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
};

use atoll_agent_protocol::message::{
    Change, ChangeKind, Done, Entry, Match, Response, Searched, request::Call, response::Answer,
};
use atoll_engine::{Edit, ErrorKind, Files as _, Glob, Grep};
use futures_util::{StreamExt as _, TryStreamExt as _};

use crate::stage::{Place, Script, honest_but, say};

/// An honest agent, but for these answers to searches and watches.
fn answering(answers: Vec<Answer>) -> Arc<Place> {
    let script = Arc::<Script>::default();
    honest_but(&script, move |call, stream| match call {
        Call::Watch(_) | Call::Glob(_) | Call::Grep(_) | Call::Edit(_) => {
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

fn glob() -> Glob {
    Glob { pattern: "*".into(), limit: Some(2), ..Glob::default() }
}

fn grep() -> Grep {
    Grep { pattern: "x".into(), limit: Some(2), ..Grep::default() }
}

fn found(name: &[u8], path: &[u8]) -> Answer {
    Answer::Entry(Entry { name: name.to_vec(), path: path.to_vec(), ..Entry::default() })
}

fn hit(path: &[u8], context: usize) -> Answer {
    let before = vec![Vec::new(); context];
    Answer::Match(Match { path: path.to_vec(), line: 1, before, ..Match::default() })
}

fn change(kind: i32, path: &[u8]) -> Answer {
    Answer::Change(Change { kind, path: path.to_vec(), ..Change::default() })
}

#[tokio::test]
async fn nothing_is_found_that_can_be_no_path_and_no_more_than_asked_for() {
    let done = Answer::Done(Done::default());
    let good = found(b"a", b"/a");
    let cases = [
        (vec![good.clone(), good.clone(), done.clone()], Some(2)),
        (vec![good.clone(), good.clone(), good.clone(), done.clone()], None),
        (vec![found(b"a", b"relative"), done.clone()], None),
        (vec![found(b"a/b", b"/a/b"), done.clone()], None),
        (vec![found(b"a", b"/a\0b"), done.clone()], None),
        (vec![good.clone()], None),
        (vec![Answer::Searched(Searched::default())], None),
    ];
    for (answers, expected) in cases {
        let sandbox = answering(answers.clone()).connect_to().await.unwrap();

        let seen = sandbox.glob(&glob()).await.ok().map(|found| found.entries.len());

        assert_eq!(seen, expected, "{answers:?}");
    }
}

#[tokio::test]
async fn lines_are_told_within_bounds() {
    let end = Answer::Searched(Searched { truncated: true, binary: 7, ..Searched::default() });
    let cases = [
        (vec![hit(b"/f\xff", 10), end.clone()], Some((1, 7))),
        (vec![hit(b"/f", 11), end.clone()], None),
        (vec![hit(b"f", 0), end.clone()], None),
        (vec![hit(b"/f", 0), hit(b"/f", 0), hit(b"/f", 0), end], None),
        (vec![hit(b"/f", 0)], None),
    ];
    for (answers, expected) in cases {
        let sandbox = answering(answers.clone()).connect_to().await.unwrap();

        let seen = sandbox.grep(&grep()).await.ok();

        assert_eq!(seen.map(|seen| (seen.matches.len(), seen.binary)), expected, "{answers:?}");
    }
}

#[tokio::test]
async fn an_endless_search_is_cut_off() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::Grep(_) => Break(Box::pin(async move {
            let text = vec![b'x'; 900_000];
            let found = Match { path: b"/f".to_vec(), text, ..Match::default() };
            let response = Response { answer: Some(Answer::Match(found)) };
            while stream.send(&response).await.is_ok() {}
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();

    let error = sandbox.grep(&Grep { limit: None, ..grep() }).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
}

#[tokio::test]
async fn changes_are_told_until_one_makes_no_sense() {
    let (created, overflow) = (ChangeKind::Created.into(), ChangeKind::Overflow.into());
    let done = Answer::Done(Done::default());
    let cases = [
        (vec![change(created, b"/a"), change(overflow, b"")], 2, true),
        (vec![change(created, b"/a"), change(99, b"/b"), change(created, b"/c")], 1, false),
        (vec![change(created, b"a")], 0, false),
        (vec![change(created, b"")], 0, false),
        // Where it was is not told.
        (vec![change(ChangeKind::Moved.into(), b"/a")], 0, false),
        (vec![done.clone()], 0, false),
    ];
    for (changes, good, whole) in cases {
        let answers = [vec![done.clone()], changes.clone()].concat();
        let sandbox = answering(answers).connect_to().await.unwrap();

        let told: Vec<_> = sandbox.watch("d", true).await.unwrap().collect().await;

        let fine = told.iter().filter(|change| change.is_ok()).count();
        assert_eq!((fine, told.last().is_none_or(Result::is_ok)), (good, whole), "{changes:?}");
        assert!(told.len() - fine <= 1, "an error is final");
    }
}

#[tokio::test]
async fn a_watch_begins_with_saying_so() {
    let sandbox = answering(vec![change(1, b"/a")]).connect_to().await.unwrap();

    assert!(sandbox.watch("d", true).await.is_err());
}

#[tokio::test]
async fn a_watch_ends_in_an_error_when_the_sandbox_does() {
    let script = Arc::<Script>::default();
    let place = honest_but(&script, |call, stream| match call {
        Call::Watch(_) => Break(Box::pin(async move {
            say(&stream, Answer::Done(Done::default())).await;
            std::future::pending::<()>().await;
        })),
        call => Continue((call, stream)),
    });
    let sandbox = place.connect_to().await.unwrap();
    let mut changes = sandbox.watch("d", true).await.unwrap();

    place.gone.cancel();

    let error = changes.try_next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
}

#[tokio::test]
async fn what_makes_no_sense_is_not_sent() {
    let sandbox = answering(vec![Answer::Done(Done::default())]).connect_to().await.unwrap();
    let edit = Edit { old: "x".repeat(3 << 20), ..Edit::default() };
    let errors = [
        sandbox.glob(&Glob { limit: Some(0), ..glob() }).await.err(),
        sandbox.glob(&Glob { limit: Some(10_001), ..glob() }).await.err(),
        sandbox.glob(&Glob { pattern: String::new(), ..glob() }).await.err(),
        sandbox.glob(&Glob { path: Some("a\0".into()), ..glob() }).await.err(),
        sandbox.grep(&Grep { pattern: "x".repeat(100_000), ..grep() }).await.err(),
        sandbox.grep(&Grep { path: Some(String::new()), ..grep() }).await.err(),
        sandbox.watch("", true).await.err(),
        sandbox.edit("f", &[edit]).await.err(),
        sandbox.edit("f", &vec![Edit::default(); 1001]).await.err(),
    ];
    for error in errors {
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Invalid));
    }
}
