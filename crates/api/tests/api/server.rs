//! The server about itself.

use axum::{
    body::Body,
    http::{Method, Request},
};
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn anyone_may_ask_whether_it_lives() {
    World::run(async |world| {
        let request =
            Request::builder().uri("/healthz").header("host", "localhost").body(Body::empty());

        let reply = world.send(request.unwrap()).await;

        assert_eq!((reply.status, reply.text()), (200, r#"{"status":"ok"}"#));
    })
    .await;
}

#[tokio::test]
async fn it_says_which_one_it_is() {
    World::run(async |world| {
        let version = world.get("/api/version").await.json();

        assert_eq!(version["version"], "1.2.3");
        assert_eq!(version["pid"], std::process::id());
        assert!(version["started_at"].is_string());
    })
    .await;
}

#[tokio::test]
async fn engines_and_environments_are_told() {
    World::run(async |world| {
        let engines = world.get("/api/engines").await.json();
        let environments = world.get("/api/environments").await.json();

        assert_eq!(engines["engines"][0]["name"], "local");
        assert_eq!(engines["engines"][0]["isolation"], "none");
        let names: Vec<_> = environments["environments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|environment| environment["name"].as_str().unwrap().to_owned())
            .collect();
        for name in ["base", "python", "node", "bash"] {
            assert!(names.iter().any(|found| found == name), "{name} of {names:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_key_is_made_and_its_secret_shown_once() {
    World::run(async |world| {
        let made = world.post("/api/keys", json!({ "name": "ci", "scopes": ["read"] })).await;
        let again = world.post("/api/keys", json!({ "name": "ci" })).await;
        let wrong = world.post("/api/keys", json!({ "name": "x", "scopes": ["root"] })).await;
        let listed = world.get("/api/keys").await;

        assert_eq!(made.status, 201, "{made:?}");
        assert_eq!(made.headers["cache-control"], "no-store");
        let secret = made.json()["key"].as_str().unwrap().to_owned();
        assert_eq!((again.status, again.code().as_str()), (409, "conflict"));
        assert_eq!(wrong.status, 400);
        assert!(wrong.text().contains("`scopes[0]`"), "{wrong:?}");
        assert_eq!(listed.json()["keys"][0]["name"], "ci");
        assert!(!listed.text().contains(&secret));
    })
    .await;
}

#[tokio::test]
async fn requests_are_counted_by_route_and_not_by_path() {
    World::run(async |world| {
        world.get("/api/sessions/one-of-many").await;
        world.ask(Method::from_bytes(b"ODD").unwrap(), "/api/odd", Body::empty()).await;

        let reply = world.get("/metrics").await;

        assert_eq!(reply.status, 200);
        assert!(reply.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
        let counted =
            r#"atoll_http_requests_total{method="GET",route="/api/sessions/{id}",status="404"}"#;
        assert!(reply.text().contains(counted), "{}", reply.text());
        assert!(!reply.text().contains("one-of-many"));
        assert!(!reply.text().contains("ODD"));
    })
    .await;
}

#[tokio::test]
async fn a_request_keeps_the_id_its_client_gave() {
    World::run(async |world| {
        let request = Request::builder()
            .uri("/healthz")
            .header("host", "localhost")
            .header("x-request-id", "trace-7")
            .body(Body::empty());

        let reply = world.send(request.unwrap()).await;

        assert_eq!(reply.headers["x-request-id"], "trace-7");
    })
    .await;
}
