//! Who is let in: nobody, unless the table of routes says so.

use std::sync::atomic::{AtomicBool, Ordering};

use atoll_types::key::Scope;
use axum::{
    body::Body,
    http::{Method, Request},
};
use bytes::Bytes;
use serde_json::Value;

use crate::world::World;

/// Every route of the description: method, a path it has, and the scope it needs, if any.
fn routes(document: &Value) -> Vec<(Method, String, Option<String>)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path
            .replace("{id}", "absent")
            .replace("{process}", "1")
            .replace("{port}", "80")
            .replace("{path}", "x")
            .replace("{key}", "absent");
        for (method, operation) in item.as_object().unwrap() {
            let scope = operation["security"][0]["bearer"][0].as_str().map(str::to_owned);
            found.push((method.to_uppercase().parse().unwrap(), path.clone(), scope));
        }
    }
    found
}

fn request(method: &Method, path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("host", "localhost:8000");
    headers
        .iter()
        .fold(request, |r, (name, value)| r.header(*name, *value))
        .body(Body::empty())
        .unwrap()
}

#[tokio::test]
async fn no_route_opens_without_a_key_of_the_right_scope() {
    World::run(async |world| {
        let document = world.get("/openapi.json").await.json();
        let read = world.key(&[Scope::Read]).await;
        let run = world.key(&[Scope::Run]).await;
        let both = world.key(&[Scope::Read, Scope::Run]).await;
        let admin = world.key(&[Scope::Admin]).await;
        let mut open = Vec::new();

        for (method, path, scope) in routes(&document) {
            let status = async |headers: &[(&str, &str)]| {
                world.send(request(&method, &path, headers)).await.status
            };
            let Some(scope) = scope else {
                assert_eq!(status(&[]).await, 200, "{path}");
                open.push(path.clone());
                continue;
            };
            let other = match scope.as_str() {
                "read" => &run,
                "run" => &read,
                "admin" => &both,
                _ => panic!("{scope}"),
            };
            let name = format!("{method} {path}");
            assert_eq!(status(&[]).await, 401, "{name} without a key");
            assert_eq!(status(&[("x-api-key", "wrong")]).await, 401, "{name} with a wrong key");
            let last = if admin.ends_with('x') { 'y' } else { 'x' };
            let almost = format!("{}{last}", &admin[..admin.len() - 1]);
            assert_eq!(status(&[("x-api-key", &almost)]).await, 401, "{name} with a forged key");
            assert_eq!(status(&[("x-api-key", other)]).await, 403, "{name} without its scope");
            let bearer = format!("Bearer {admin}");
            let fine = status(&[("authorization", &bearer)]).await;
            assert!(!matches!(fine, 401 | 403 | 405 | 500..), "{name} as admin: {fine}");
        }

        assert_eq!(open, ["/healthz"]);
    })
    .await;
}

#[tokio::test]
async fn what_is_not_there_is_not_told_to_strangers() {
    World::run(async |world| {
        let nowhere = world.send(request(&Method::GET, "/api/nowhere", &[])).await;
        let wrong_method = world.send(request(&Method::PATCH, "/api/sessions", &[])).await;

        assert_eq!((nowhere.status, wrong_method.status), (401, 401));
        insta::assert_snapshot!(nowhere.text(), @r#"{"error":{"code":"unauthorized","message":"a key is needed","hint":"make one with `atoll key create NAME` and send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`"}}"#);
        assert_eq!(nowhere.headers["www-authenticate"], "Bearer");
    })
    .await;
}

#[tokio::test]
async fn a_removed_key_opens_nothing() {
    World::run(async |world| {
        let key = world.key(&[Scope::Admin]).await;
        let header = [("x-api-key", key.as_str())];
        let listed = world.send(request(&Method::GET, "/api/keys", &header)).await;
        let id = listed.json()["keys"][0]["id"].as_str().unwrap().to_owned();
        assert!(!listed.text().contains(&key), "a list shows no secrets");

        let removed =
            world.send(request(&Method::DELETE, &format!("/api/keys/{id}"), &header)).await;
        let after = world.send(request(&Method::GET, "/api/keys", &header)).await;

        assert_eq!((removed.status, after.status), (204, 401));
        insta::assert_snapshot!(after.text(), @r#"{"error":{"code":"unauthorized","message":"this key is not valid","hint":"it may have been removed; `atoll key ls` lists those that are"}}"#);
    })
    .await;
}

#[tokio::test]
async fn a_body_is_not_read_before_the_caller_is_known() {
    World::run(async |world| {
        static READ: AtomicBool = AtomicBool::new(false);
        let content = futures_util::stream::once(async {
            READ.store(true, Ordering::SeqCst);
            Ok::<_, std::io::Error>(Bytes::from_static(b"{}"))
        });
        let request = Request::builder()
            .method(Method::POST)
            .uri("/api/sessions")
            .header("host", "localhost")
            .body(Body::from_stream(content))
            .unwrap();

        let reply = world.send(request).await;

        assert_eq!(reply.status, 401);
        assert!(!READ.load(Ordering::SeqCst));
    })
    .await;
}

#[tokio::test]
async fn pages_and_names_that_are_not_ours_are_refused_even_with_a_key() {
    World::run(async |world| {
        let key = world.key(&[Scope::Admin]).await;
        for (host, extra, status) in [
            ("localhost:8000", None, 200),
            ("127.0.0.1:8000", None, 200),
            ("atoll.example", None, 200),
            ("evil.example", None, 403),
            ("localhost.", None, 403),
            ("0.0.0.0:8000", None, 403),
            ("localhost:8000", Some(("origin", "http://localhost:8000")), 200),
            ("localhost:8000", Some(("origin", "http://evil.example")), 403),
            ("localhost:8000", Some(("origin", "null")), 403),
            ("localhost:8000", Some(("sec-fetch-site", "cross-site")), 403),
            ("localhost:8000", Some(("sec-fetch-site", "same-origin")), 200),
        ] {
            let request =
                Request::builder().uri("/api/keys").header("host", host).header("x-api-key", &key);
            let request = extra.into_iter().fold(request, |r, (name, value)| r.header(name, value));

            let reply = world.send(request.body(Body::empty()).unwrap()).await;

            assert_eq!(reply.status, status, "{host} {extra:?}");
            assert!(!reply.headers.contains_key("access-control-allow-origin"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_preflight_gets_no_permission() {
    World::run(async |world| {
        let request = request(
            &Method::OPTIONS,
            "/api/sessions",
            &[("origin", "http://evil.example"), ("access-control-request-method", "POST")],
        );

        let reply = world.send(request).await;

        assert_eq!(reply.status, 403);
        insta::assert_snapshot!(reply.text(), @r#"{"error":{"code":"denied","message":"pages of other origins may not call this server"}}"#);
    })
    .await;
}

#[tokio::test]
async fn the_content_type_does_not_matter_with_a_key() {
    World::run(async |world| {
        let key = world.key(&[Scope::Run]).await;
        for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
            let request = Request::builder()
                .method(Method::POST)
                .uri("/execute/sync")
                .header("host", "localhost")
                .header("x-api-key", &key);
            let request = kind.into_iter().fold(request, |r, kind| r.header("content-type", kind));
            let body = r#"{"command":"echo hello","trusted":true}"#;

            let reply = world.send(request.body(Body::from(body)).unwrap()).await;

            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.json()["stdout"], "hello\n");
        }
    })
    .await;
}
