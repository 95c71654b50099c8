//! Files, in and out.

use axum::{body::Body, http::Method};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_file_goes_in_and_out_unchanged() {
    World::run(async |world| {
        let id = world.session().await;
        let target = format!("/api/sessions/{id}/files?path=deep/er/a%20b%26c.bin");
        let piece = Bytes::from((0..=255u8).cycle().take(100_000).collect::<Vec<_>>());
        let content = stream::iter(vec![piece.clone(); 30]).map(Ok::<_, std::io::Error>);

        let put = world.ask(Method::PUT, &target, Body::from_stream(content)).await;
        let got = world.get(&target).await;

        assert_eq!((put.status, put.text()), (204, ""));
        assert_eq!(got.status, 200);
        assert_eq!(got.headers["content-type"], "application/octet-stream");
        assert!(got.body == piece.repeat(30), "{} bytes came back", got.body.len());
    })
    .await;
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_the_old_file() {
    World::run(async |world| {
        let id = world.session().await;
        let target = format!("/api/sessions/{id}/files?path=note");
        world.ask(Method::PUT, &target, "old").await;
        let content = stream::iter([Ok(Bytes::from("new")), Err(std::io::Error::other("gone"))]);

        let put = world.ask(Method::PUT, &target, Body::from_stream(content)).await;
        let got = world.get(&target).await;
        let listed = world.get(&format!("/api/sessions/{id}/files/list?path=.")).await;

        assert_eq!((put.status, put.code().as_str()), (400, "invalid_request"));
        assert_eq!(got.text(), "old");
        assert_eq!(listed.json()["entries"].as_array().unwrap().len(), 1, "{listed:?}");
    })
    .await;
}

#[tokio::test]
async fn files_are_made_moved_copied_changed_and_removed() {
    World::run(async |world| {
        let id = world.session().await;
        let at = |rest: &str| format!("/api/sessions/{id}/files{rest}");
        let exists = async |path: &str| {
            world.get(&at(&format!("/exists?path={path}"))).await.json()["exists"].clone()
        };

        let made = world.post(&at("/mkdir"), json!({ "path": "d/e" })).await;
        world.ask(Method::PUT, &at("?path=d/one"), "1").await;
        let moved = world.post(&at("/move"), json!({ "from": "d/one", "to": "d/two" })).await;
        let copied = world.post(&at("/copy"), json!({ "from": "d/two", "to": "three" })).await;
        let changed = world.post(&at("/chmod"), json!({ "path": "three", "mode": 0o700 })).await;

        let all = [&made, &moved, &copied, &changed].map(|reply| reply.status);
        assert_eq!(all, [204; 4], "{made:?} {moved:?} {copied:?} {changed:?}");
        assert_eq!((exists("d/one").await, exists("d/two").await), (false.into(), true.into()));
        let stat = world.get(&at("/stat?path=three")).await.json();
        assert_eq!(
            (&stat["mode"], &stat["size"], &stat["kind"]),
            (&json!(0o700), &json!(1), &json!("file"))
        );

        let removed = world.delete(&at("?path=d")).await;
        let again = world.delete(&at("?path=d")).await;

        assert_eq!((removed.status, again.status), (204, 404));
        assert_eq!(exists("d").await, false);
    })
    .await;
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    World::run(async |world| {
        let id = world.session().await;
        let at = |rest: &str| format!("/api/sessions/{id}/files{rest}");
        let execute = format!("/api/sessions/{id}/execute");
        let made = world.post(&execute, json!({ "command": "mkdir d && mkfifo pipe" })).await;
        assert_eq!(made.json()["exit_code"], 0, "{made:?}");

        let directory = world.get(&at("?path=d")).await;
        let pipe = world.get(&at("?path=pipe")).await;
        let absent = world.get(&at("?path=absent")).await;
        let empty = world.get(&at("?path=")).await;
        let over = world.ask(Method::PUT, &at("?path=d"), "x").await;

        let told =
            [&directory, &pipe, &absent, &empty, &over].map(|reply| (reply.status, reply.code()));
        let invalid = || (400, "invalid_request".to_owned());
        assert_eq!(
            told,
            [invalid(), invalid(), (404, "not_found".to_owned()), invalid(), invalid()]
        );
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_gone_has_no_files() {
    World::run(async |world| {
        let id = world.session().await;
        world.delete(&format!("/api/sessions/{id}")).await;

        for verb in ["", "/list", "/stat", "/exists"] {
            let reply = world.get(&format!("/api/sessions/{id}/files{verb}?path=note")).await;

            assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{verb}");
        }
    })
    .await;
}
