//! A client that goes away in the middle and comes back.

use axum::{body::Body, http::Request};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{PATIENCE, World};

/// One event: its id, and what it says.
type Event = (String, Value);

/// Reads events until `enough` says so, then hangs up.
async fn attach(
    world: &World,
    target: &str,
    last: Option<&str>,
    mut enough: impl FnMut(&[Event]) -> bool,
) -> Vec<Event> {
    let mut request = Request::builder().uri(target);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(atoll_api::Peer::Operator { uid: 0 });
    let response = world.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut body = response.into_body().into_data_stream();
    let (mut text, mut events) = (String::new(), Vec::new());
    while !enough(&events) {
        let Some(piece) = tokio::time::timeout(PATIENCE, body.next()).await.expect("in time")
        else {
            break;
        };
        text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n") {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            if let Some(data) = field("data: ") {
                let id = field("id: ").unwrap().to_owned();
                events.push((id, serde_json::from_str(data).unwrap()));
            }
            text = rest.to_owned();
        }
    }
    events
}

fn written(events: &[Event], stream: &str) -> Vec<u8> {
    let of_stream = events.iter().filter(|(_, event)| event["stream"] == stream);
    of_stream
        .flat_map(|(_, event)| STANDARD.decode(event["data"].as_str().unwrap()).unwrap())
        .collect()
}

async fn start(world: &World, line: &str) -> String {
    let id = world.session().await;
    let list = format!("/api/sessions/{id}/processes");
    let reply = world.post(&list, json!({ "command": line })).await.json();
    format!("{list}/{}", reply["id"])
}

#[tokio::test]
async fn output_goes_on_at_each_offset() {
    World::run(async |world| {
        let process = start(world, "seq 1 40; seq 100 120 >&2").await;
        let all = attach(world, &format!("{process}/attach"), None, |_| false).await;
        let (stdout, stderr) = (written(&all, "stdout"), written(&all, "stderr"));
        assert_eq!((stdout.len(), stderr.len()), (111, 84));

        for at in 0..=stdout.len() {
            let other = at.min(stderr.len());
            let target = format!("{process}/attach?stdout={at}&stderr={other}");
            let rest = attach(world, &target, None, |_| false).await;
            assert_eq!(written(&rest, "stdout"), stdout[at..], "from {at}");
            assert_eq!(written(&rest, "stderr"), stderr[other..], "from {other}");
        }
        let shown = world.get(&process).await.json();
        assert_eq!(shown["written"], json!({ "stdout": 111, "stderr": 84 }));
    })
    .await;
}

#[tokio::test]
async fn a_client_that_comes_back_misses_nothing_and_sees_nothing_twice() {
    World::run(async |world| {
        let line = "for n in $(seq 1 200); do echo $n; echo e$n >&2; done; seq 201 60000";
        let process = start(world, line).await;
        let target = format!("{process}/attach?stdout=0&stderr=0");
        let (mut stdout, mut stderr, mut last) = (Vec::new(), Vec::new(), None::<String>);
        let mut ended = false;

        // Hangs up after each second event, and says what it saw last.
        while !ended {
            let events = attach(world, &target, last.as_deref(), |events| events.len() >= 2).await;
            let events = &events[..events.len().min(2)];
            stdout.extend(written(events, "stdout"));
            stderr.extend(written(events, "stderr"));
            last = events.last().map(|(id, _)| id.clone());
            assert_eq!(last, Some(format!("{}:{}", stdout.len(), stderr.len())));
            ended = events.iter().any(|(_, event)| event["type"] == "end");
        }

        let lines = |range: std::ops::RangeInclusive<u32>, prefix: &str| {
            range.flat_map(|number| format!("{prefix}{number}\n").into_bytes()).collect::<Vec<u8>>()
        };
        assert!(stdout == lines(1..=60_000, ""), "{} bytes", stdout.len());
        assert!(stderr == lines(1..=200, "e"), "{} bytes", stderr.len());
    })
    .await;
}
