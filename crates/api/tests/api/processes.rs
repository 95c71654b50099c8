//! Processes that run by themselves.

use axum::{
    body::Body,
    http::{Method, Request},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::world::{Reply, World};

/// The events of an attach: kind, id and data.
fn events(reply: &Reply) -> Vec<(String, String, Value)> {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    let field = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_default().to_owned()
    };
    reply
        .text()
        .split("\n\n")
        .filter(|event| event.contains("data: "))
        .map(|event| {
            let data = serde_json::from_str(&field(event, "data")).unwrap();
            (field(event, "event"), field(event, "id"), data)
        })
        .collect()
}

/// All that was written to a stream.
fn written(events: &[(String, String, Value)], stream: &str) -> String {
    let bytes: Vec<u8> = events
        .iter()
        .filter(|(kind, _, data)| kind == "output" && data["stream"] == stream)
        .flat_map(|(_, _, data)| STANDARD.decode(data["data"].as_str().unwrap()).unwrap())
        .collect();
    String::from_utf8(bytes).unwrap()
}

async fn start(world: &World, id: &str, body: Value) -> String {
    let reply = world.post(&format!("/api/sessions/{id}/processes"), body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    format!("/api/sessions/{id}/processes/{}", reply.json()["id"])
}

#[tokio::test]
async fn a_process_is_followed_from_any_byte() {
    World::run(async |world| {
        let id = world.session().await;
        let line = "printf hello; printf oops >&2; exit 7";
        let process = start(world, &id, json!({ "command": line })).await;

        let all = events(&world.get(&format!("{process}/attach")).await);
        let rest = events(&world.get(&format!("{process}/attach?stdout=3&stderr=4")).await);
        let mut again = Request::builder()
            .uri(format!("{process}/attach?stdout=0"))
            .header("last-event-id", "4:1")
            .body(Body::empty())
            .unwrap();
        again.extensions_mut().insert(atoll_api::Peer::Operator { uid: 0 });
        let again = events(&world.send(again).await);

        assert_eq!(
            (written(&all, "stdout"), written(&all, "stderr")),
            ("hello".into(), "oops".into())
        );
        let (kind, last, data) = all.last().unwrap();
        assert_eq!((kind.as_str(), last.as_str()), ("end", "5:4"));
        assert_eq!(
            (&data["end"]["reason"], &data["end"]["exit_code"]),
            (&json!("exited"), &json!(7))
        );
        assert_eq!(
            (written(&rest, "stdout"), written(&rest, "stderr")),
            ("lo".into(), String::new())
        );
        assert_eq!(
            (written(&again, "stdout"), written(&again, "stderr")),
            ("o".into(), "ops".into())
        );
    })
    .await;
}

#[tokio::test]
async fn long_output_comes_in_bounded_events_and_whole() {
    World::run(async |world| {
        let id = world.session().await;
        let line = "head -c 500000 /dev/zero | tr '\\0' x";
        let process = start(world, &id, json!({ "command": line })).await;

        let all = events(&world.get(&format!("{process}/attach")).await);

        assert_eq!(written(&all, "stdout").len(), 500_000);
        let longest = all.iter().filter_map(|(_, _, data)| data["data"].as_str()).map(str::len);
        assert!(longest.max().unwrap() <= (64 << 10) / 3 * 4 + 4);
    })
    .await;
}

#[tokio::test]
async fn a_process_reads_what_it_is_sent_until_its_input_ends() {
    World::run(async |world| {
        let id = world.session().await;
        let process = start(world, &id, json!({ "command": ["cat"], "stdin": true })).await;

        let one = world.ask(Method::POST, &format!("{process}/stdin"), "one ").await;
        let two = world.ask(Method::POST, &format!("{process}/stdin"), "two").await;
        let closed = world.delete(&format!("{process}/stdin")).await;
        let all = events(&world.get(&format!("{process}/attach")).await);

        assert_eq!([one.status, two.status, closed.status], [204; 3]);
        assert_eq!(written(&all, "stdout"), "one two");
    })
    .await;
}

#[tokio::test]
async fn a_process_is_signalled_listed_and_killed() {
    World::run(async |world| {
        let id = world.session().await;
        let list = format!("/api/sessions/{id}/processes");
        let first = start(world, &id, json!({ "command": ["sleep", "1000"] })).await;
        let second = start(world, &id, json!({ "command": ["sleep", "1000"] })).await;

        let signalled = world.post(&format!("{first}/signal"), json!({ "signal": 15 })).await;
        let killed = world.delete(&second).await;
        let ends = [&first, &second].map(|process| format!("{process}/attach"));
        let ends = [world.get(&ends[0]).await, world.get(&ends[1]).await]
            .map(|reply| events(&reply).last().unwrap().2["end"].clone());
        let listed = world.get(&list).await.json();
        let shown = world.get(&first).await.json();

        assert_eq!([signalled.status, killed.status], [204; 2], "{signalled:?} {killed:?}");
        assert_eq!((&ends[0]["reason"], &ends[0]["signal"]), (&json!("signaled"), &json!(15)));
        assert_eq!(ends[1]["reason"], "cancelled");
        assert_eq!(listed["processes"].as_array().unwrap().len(), 2);
        assert_eq!(shown["end"]["reason"], "signaled");
        assert_eq!(shown["command"], json!(["sleep", "1000"]));
    })
    .await;
}

#[tokio::test]
async fn what_makes_no_sense_to_a_process_is_refused() {
    World::run(async |world| {
        let id = world.session().await;
        let process = start(world, &id, json!({ "command": ["sleep", "1000"] })).await;
        let other = format!("/api/sessions/{id}/processes/999");
        let mut wrong = Request::builder()
            .uri(format!("{process}/attach"))
            .header("last-event-id", "x")
            .body(Body::empty())
            .unwrap();
        wrong.extensions_mut().insert(atoll_api::Peer::Operator { uid: 0 });

        let last = world.send(wrong).await;
        let signal = world.post(&format!("{process}/signal"), json!({ "signal": 99 })).await;
        let stdin = world.ask(Method::POST, &format!("{process}/stdin"), "x").await;
        let absent = [
            world.get(&other).await.status,
            world.get(&format!("{other}/attach")).await.status,
            world.ask(Method::POST, &format!("{other}/stdin"), "").await.status,
            world.post(&format!("{other}/signal"), json!({ "signal": 9 })).await.status,
        ];

        assert_eq!([last.status, signal.status, stdin.status], [400; 3], "{signal:?} {stdin:?}");
        assert_eq!(absent, [404; 4]);
    })
    .await;
}
