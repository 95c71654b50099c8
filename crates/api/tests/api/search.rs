//! Finding, changing and following files.

use axum::{
    body::{Body, to_bytes},
    http::{Method, Request},
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{PATIENCE, World};

async fn put(world: &World, id: &str, path: &str, content: &'static str) {
    let target = format!("/api/sessions/{id}/files?path={path}");
    assert_eq!(world.ask(Method::PUT, &target, content).await.status, 204);
}

#[tokio::test]
async fn files_and_lines_are_found() {
    World::run(async |world| {
        let id = world.session().await;
        put(world, &id, "src/a.py", "x = 1\n# TODO: y\n").await;
        put(world, &id, "b.txt", "nothing\n").await;
        let at = |verb: &str| format!("/api/sessions/{id}/files/{verb}");

        let names = world.post(&at("glob"), json!({ "pattern": "**/*.py" })).await;
        let lines = world.post(&at("grep"), json!({ "pattern": "TODO", "context": 1 })).await;

        assert_eq!((names.status, lines.status), (200, 200), "{names:?} {lines:?}");
        let (names, lines) = (names.json(), lines.json());
        assert_eq!(names["entries"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&names["entries"][0]["name"], &names["truncated"]),
            (&json!("a.py"), &json!(false))
        );
        let found = &lines["matches"][0];
        assert_eq!((&found["line"], &found["column"]), (&json!(2), &json!(3)));
        assert_eq!((&found["text"], &found["before"]), (&json!("# TODO: y"), &json!(["x = 1"])));
        assert_eq!((&lines["searched"], &lines["binary"]), (&json!(2), &json!(0)));
    })
    .await;
}

#[tokio::test]
async fn text_is_replaced_or_the_answer_says_why_not() {
    World::run(async |world| {
        let id = world.session().await;
        put(world, &id, "f", "one two two").await;
        let target = format!("/api/sessions/{id}/files/edit");
        let edit =
            async |edits: Value| world.post(&target, json!({ "path": "f", "edits": edits })).await;

        let done = edit(json!([{ "old": "one", "new": "1" }])).await;
        let twice = edit(json!([{ "old": "two", "new": "2" }])).await;
        let unknown = edit(json!([{ "old": "two", "new": "2", "al": true }])).await;

        assert_eq!((done.status, done.json()), (200, json!({ "replaced": 1, "size": 9 })));
        assert_eq!((twice.status, twice.code().as_str()), (400, "invalid_request"));
        assert!(twice.text().contains("2 times"), "{twice:?}");
        assert_eq!(unknown.status, 400, "{unknown:?}");
    })
    .await;
}

#[tokio::test]
async fn a_search_that_makes_no_sense_is_refused() {
    World::run(async |world| {
        let id = world.session().await;
        let at = |verb: &str| format!("/api/sessions/{id}/files/{verb}");

        let refused = [
            world.post(&at("glob"), json!({ "pattern": "{a" })).await,
            world.post(&at("glob"), json!({ "pattern": "*", "limit": 0 })).await,
            world.post(&at("glob"), json!({})).await,
            world.post(&at("grep"), json!({ "pattern": "a(" })).await,
            world.get(&at("watch")).await,
            world.get(&at("watch?path=.&recursive=perhaps")).await,
        ];
        let absent = [
            world.post(&at("grep"), json!({ "pattern": "a", "path": "absent" })).await,
            world.get(&at("watch?path=absent")).await,
        ];

        for reply in refused {
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (400, "invalid_request"),
                "{reply:?}"
            );
        }
        for reply in absent {
            assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{reply:?}");
        }
    })
    .await;
}

/// Begins to watch; what happens in the directory, until it is removed by `then`.
async fn watched(world: &World, id: &str, last: Option<&str>, then: &str) -> Vec<(String, Value)> {
    let uri = format!("/api/sessions/{id}/files/watch?path=d&recursive=true");
    let mut request = Request::builder().uri(uri);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(atoll_api::Peer::Operator { uid: 0 });
    let answer = world.router.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    // It watches now: nothing after this is missed.
    let done = world.post(&format!("/api/sessions/{id}/execute"), json!({ "command": then })).await;
    assert_eq!(done.json()["exit_code"], 0, "{done:?}");
    let body = tokio::time::timeout(PATIENCE, to_bytes(answer.into_body(), 1 << 20)).await;
    let body = body.expect("the watch ends").unwrap();
    let field = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_default().to_owned()
    };
    let events =
        str::from_utf8(&body).unwrap().split("\n\n").filter(|text| text.contains("data: "));
    events
        .map(|event| (field(event, "id"), serde_json::from_str(&field(event, "data")).unwrap()))
        .collect()
}

#[tokio::test]
async fn what_happens_is_told_until_the_directory_is_gone() {
    World::run(async |world| {
        let id = world.session().await;
        put(world, &id, "d/old", "x").await;

        let told = watched(world, &id, None, "mv d/old d/new; rm d/new; rmdir d").await;

        let numbers: Vec<_> = told.iter().map(|(id, _)| id.as_str()).collect();
        let kinds: Vec<_> = told.iter().map(|(_, change)| &change["type"]).collect();
        assert_eq!(kinds, ["moved", "removed", "removed"]);
        assert_eq!(numbers, ["1", "2", "3"]);
        assert!(told[0].1["from"].as_str().unwrap().ends_with("/d/old"), "{told:?}");
        assert_eq!(told[2].1["directory"], true);
    })
    .await;
}

#[tokio::test]
async fn who_comes_back_is_told_that_something_was_missed() {
    World::run(async |world| {
        let id = world.session().await;
        put(world, &id, "d/f", "x").await;

        let told = watched(world, &id, Some("7"), "rm -r d").await;

        assert_eq!(told[0].1, json!({ "type": "overflow" }));
    })
    .await;
}
