//! Everything that says no says it in the same way.

use axum::{
    body::Body,
    http::{Method, Request},
};
use serde_json::json;

use crate::world::{Reply, World};

/// Status and body, as one text.
fn told(reply: &Reply) -> String {
    assert!(reply.headers.contains_key("x-request-id"));
    assert_eq!(reply.headers["content-type"], "application/json");
    format!("{} {}", reply.status, reply.text())
}

#[tokio::test]
async fn unknown_paths_and_methods_have_the_usual_body() {
    World::run(async |world| {
        let nowhere = world.get("/nowhere").await;
        let later = world.post("/execute/async", json!({ "code": "1" })).await;
        let method = world.ask(Method::PATCH, "/api/sessions", Body::empty()).await;

        insta::assert_snapshot!(told(&nowhere), @r#"404 {"error":{"code":"not_found","message":"there is nothing at this path","hint":"GET /openapi.json lists what there is"}}"#);
        assert_eq!(told(&later), told(&nowhere));
        insta::assert_snapshot!(told(&method), @r#"405 {"error":{"code":"method_not_allowed","message":"this path has no such method","hint":"the Allow header names those it has"}}"#);
        assert_eq!(method.headers["allow"], "POST,GET,HEAD");
    })
    .await;
}

#[tokio::test]
async fn bad_json_is_told_with_field_and_place() {
    World::run(async |world| {
        let unknown = world.post("/api/sessions", json!({ "environmemt": "x" })).await;
        let wrong = world.post("/api/execute/sync", json!({ "limits": { "memory": [] } })).await;
        let broken = world.ask(Method::POST, "/api/sessions", "{\"env\":").await;

        insta::assert_snapshot!(told(&unknown), @r#"400 {"error":{"code":"invalid_request","message":"`environmemt`: unknown field `environmemt`, expected one of `environment`, `engine`, `provider`, `timeout`, `env`, `limits`, `mounts`, `metadata`, `trusted` (line 1, column 14)"}}"#);
        insta::assert_snapshot!(told(&wrong), @r#"400 {"error":{"code":"invalid_request","message":"`limits.memory`: invalid type: list, expected a number of bytes or a text such as \"512m\" (line 1, column 22)"}}"#);
        insta::assert_snapshot!(told(&broken), @r#"400 {"error":{"code":"invalid_request","message":"`env`: EOF while parsing a value (line 1, column 7)"}}"#);
    })
    .await;
}

#[tokio::test]
async fn a_bad_query_is_told_with_its_field() {
    World::run(async |world| {
        let missing = world.get("/api/sessions/absent/files").await;
        let unknown = world.get("/api/sessions/absent/files?path=a&x=1").await;
        let limit = world.get("/api/sessions?limit=many").await;
        let state = world.get("/api/sessions?state=asleep").await;
        let filter = world.get("/api/sessions?color=red").await;
        let offset = world.get("/api/sessions/absent/processes/1/attach?stdout=-1").await;
        let sandbox = world.delete("/api/sessions/absent?sandbox_id=A_B").await;

        insta::assert_snapshot!(told(&missing), @r#"400 {"error":{"code":"invalid_request","message":"the query: missing field `path`"}}"#);
        insta::assert_snapshot!(told(&unknown), @r#"400 {"error":{"code":"invalid_request","message":"the query's `x`: unknown field `x`, expected `path`"}}"#);
        insta::assert_snapshot!(told(&limit), @r#"400 {"error":{"code":"invalid_request","message":"the query's `limit`: expected a whole number above zero"}}"#);
        insta::assert_snapshot!(told(&state), @r#"400 {"error":{"code":"invalid_request","message":"the query's `state`: unknown value `asleep`, expected one of `creating`, `ready`, `busy`, `destroying`, `gone`, `failed`, `lost`"}}"#);
        insta::assert_snapshot!(told(&filter), @r#"400 {"error":{"code":"invalid_request","message":"the query's `color` is unknown"}}"#);
        insta::assert_snapshot!(told(&offset), @r#"400 {"error":{"code":"invalid_request","message":"the query's `stdout`: invalid digit found in string"}}"#);
        insta::assert_snapshot!(told(&sandbox), @r#"400 {"error":{"code":"invalid_request","message":"the query's `sandbox_id`: an id is 1 to 63 lower-case letters, digits and inner dashes"}}"#);
    })
    .await;
}

#[tokio::test]
async fn what_names_nothing_is_not_found() {
    World::run(async |world| {
        let absent = world.get("/api/sessions/absent").await;
        let no_id = world.get("/api/sessions/NO_ID").await;
        let process = world.get("/api/sessions/absent/processes/first").await;
        let not_text = world.get("/api/sessions/%FF").await;
        let key = world.delete("/api/keys/absent").await;

        insta::assert_snapshot!(told(&absent), @r#"404 {"error":{"code":"not_found","message":"there is no session `absent`"}}"#);
        insta::assert_snapshot!(told(&no_id), @r#"404 {"error":{"code":"not_found","message":"no session has this id"}}"#);
        insta::assert_snapshot!(told(&process), @r#"404 {"error":{"code":"not_found","message":"no process has this id"}}"#);
        insta::assert_snapshot!(told(&not_text), @r#"400 {"error":{"code":"invalid_request","message":"the path is not UTF-8"}}"#);
        insta::assert_snapshot!(told(&key), @r#"404 {"error":{"code":"not_found","message":"there is no key `absent`"}}"#);
    })
    .await;
}

#[tokio::test]
async fn a_body_past_its_cap_is_refused_before_it_is_read() {
    World::run(async |world| {
        let announced = Request::builder()
            .method(Method::POST)
            .uri("/api/sessions")
            .header("content-length", (1 << 20) + 1)
            .body(Body::from_stream(
                futures_util::stream::pending::<Result<&str, std::io::Error>>(),
            ));
        let mut announced = announced.unwrap();
        announced.extensions_mut().insert(atoll_api::Peer::Operator { uid: 0 });
        let long = format!("{{\"environment\":\"{}\"}}", "x".repeat(1 << 20));
        let code = format!("{{\"command\":\"true # {}\",\"trusted\":true}}", "x".repeat(1 << 20));

        let announced = world.send(announced).await;
        let found = world.ask(Method::POST, "/api/sessions", long).await;
        let execution = world.ask(Method::POST, "/api/execute/sync", code).await;

        insta::assert_snapshot!(told(&announced), @r#"413 {"error":{"code":"too_large","message":"the body may have at most 1048576 bytes","hint":"upload large content with PUT /api/sessions/{id}/files?path="}}"#);
        assert_eq!(told(&found), told(&announced));
        assert_ne!(execution.status, 413, "code may be longer");
    })
    .await;
}

#[tokio::test]
async fn code_that_is_not_trusted_does_not_run_on_the_host() {
    World::run(async |world| {
        let reply = world.post("/api/execute/sync", json!({ "command": "true" })).await;

        insta::assert_snapshot!(told(&reply), @r#"403 {"error":{"code":"engine_not_isolating","message":"engine `local` does not separate code from its host","hint":"use an isolating engine, or mark the request `\"trusted\": true`"}}"#);
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_named() {
    World::run(async |world| {
        let reply = world.post("/api/sessions", json!({ "provider": "teapot" })).await;

        insta::assert_snapshot!(told(&reply), @r#"400 {"error":{"code":"invalid_request","message":"this server has no engine `teapot`","hint":"its engines: local"}}"#);
    })
    .await;
}

#[tokio::test]
async fn a_mount_the_operator_did_not_list_is_denied_to_keys_only() {
    World::run(async |world| {
        let key = world.key(&[atoll_types::key::Scope::Run]).await;
        let host = world.place.path().to_str().unwrap();
        let body = json!({ "trusted": true, "mounts": [{ "host": host, "guest": "/data" }] });
        let request = Request::builder()
            .method(Method::POST)
            .uri("/api/sessions")
            .header("host", "localhost")
            .header("x-api-key", key)
            .body(Body::from(body.to_string()))
            .unwrap();

        let holder = world.send(request).await;
        let operator = world.post("/api/sessions", body).await;

        assert_eq!((holder.status, holder.code().as_str()), (403, "denied"));
        // This engine has no mounts; but it was the engine that said so.
        assert_eq!((operator.status, operator.code().as_str()), (422, "unsupported"));
    })
    .await;
}
