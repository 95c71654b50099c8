//! Directories, in and out.

use axum::{
    body::Body,
    http::{Method, Request},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tower::ServiceExt as _;

use crate::world::{PATIENCE, World};

async fn shell(world: &World, id: &str, line: &str) -> String {
    let execute = format!("/api/sessions/{id}/execute");
    let reply = world.post(&execute, json!({ "command": line })).await.json();
    assert_eq!(reply["exit_code"], 0, "{line}: {reply}");
    reply["stdout"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_directory_goes_out_and_in_unchanged() {
    World::run(async |world| {
        let id = world.session().await;
        let at = |path: &str| format!("/api/sessions/{id}/files/archive?path={path}");
        let line = "mkdir -p from/d && printf x > from/d/file && ln -s d from/link && \
                    head -c 1000000 /dev/urandom > from/large && chmod 700 from/large";
        shell(world, &id, line).await;

        let packed = world.get(&at("from")).await;
        let unpacked = world.ask(Method::PUT, &at("to"), packed.body.clone()).await;

        assert_eq!((packed.status, unpacked.status), (200, 204), "{unpacked:?}");
        assert_eq!(packed.headers["content-type"], "application/x-tar");
        let told = shell(world, &id, "diff -r from to && stat -c '%a %N' to/large to/link").await;
        assert_eq!(told, "700 'to/large'\n777 'to/link' -> 'd'\n");
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_packed_or_unpacked_is_refused() {
    World::run(async |world| {
        let id = world.session().await;
        let at = |path: &str| format!("/api/sessions/{id}/files/archive?path={path}");
        let line = "mkfifo pipe; printf x > file; mkdir d e; cd e; tar cPf ../up.tar ../file";
        shell(world, &id, line).await;
        let up = world.get(&format!("/api/sessions/{id}/files?path=up.tar")).await.body;

        let absent = world.get(&at("nothing")).await;
        let pipe = world.get(&at("pipe")).await;
        let noise = world.ask(Method::PUT, &at("d"), "no archive").await;
        let upwards = world.ask(Method::PUT, &at("d"), up).await;
        let over = world.ask(Method::PUT, &at("file"), Bytes::from(vec![0; 1024])).await;
        let cut = stream::iter([Ok(Bytes::from("begin")), Err(std::io::Error::other("gone"))]);
        let cut = world.ask(Method::PUT, &at("d"), Body::from_stream(cut)).await;

        let told = [&absent, &pipe, &noise, &upwards, &over, &cut]
            .map(|reply| (reply.status, reply.code()));
        let invalid = || (400, "invalid_request".to_owned());
        let (not_found, denied) = ((404, "not_found".to_owned()), (403, "denied".to_owned()));
        assert_eq!(told, [not_found, invalid(), invalid(), denied, invalid(), invalid()]);
        assert!(upwards.text().contains("../file"), "{upwards:?}");
        assert_eq!(shell(world, &id, "ls -A d").await, "");
    })
    .await;
}

#[tokio::test]
async fn an_archive_that_breaks_off_does_not_look_whole() {
    World::run(async |world| {
        let id = world.session().await;
        shell(world, &id, "mkdir d && head -c 60M /dev/zero > d/large").await;
        let target = format!("/api/sessions/{id}/files/archive?path=d");
        let mut request = Request::builder().uri(target).body(Body::empty()).unwrap();
        request.extensions_mut().insert(atoll_api::Peer::Operator { uid: 0 });

        let response = world.router.clone().oneshot(request).await.unwrap();
        let mut body = response.into_body().into_data_stream();
        let first = body.next().await.unwrap();
        let gone = world.delete(&format!("/api/sessions/{id}")).await;
        let rest = tokio::time::timeout(PATIENCE, body.collect::<Vec<_>>()).await.unwrap();

        assert!(first.is_ok());
        assert_eq!(gone.status, 204);
        assert!(rest.last().unwrap().is_err(), "it seems to have ended well");
    })
    .await;
}
