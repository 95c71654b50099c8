//! `…/ports`, as far as an engine without a loopback of its own goes: its ports are refused, for
//! they would be the host's.

use axum::{
    body::Body,
    http::{Method, Request},
};
use tokio::net::TcpListener;

use crate::world::World;

#[tokio::test]
async fn the_hosts_ports_are_nobodys() {
    World::run(async |world| {
        let id = world.session().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();

        for path in ["ports".to_owned(), format!("ports/{port}/"), format!("ports/{port}/a/b?c")] {
            let reply = world.get(&format!("/api/sessions/{id}/{path}")).await;
            assert_eq!((reply.status, reply.code()), (422, "unsupported".to_owned()), "{path}");
            assert!(!reply.headers.contains_key("x-atoll-port"), "{path}");
        }
        let posted = world
            .ask(Method::POST, &format!("/api/sessions/{id}/ports/{port}/x"), Body::from("body"))
            .await;
        assert_eq!(posted.status, 422);
    })
    .await;
}

#[tokio::test]
async fn what_is_no_port_is_said() {
    World::run(async |world| {
        let id = world.session().await;

        for port in ["0", "65536", "-1", "+80", "080", "http", "80x", "%20"] {
            let reply = world.get(&format!("/api/sessions/{id}/ports/{port}/")).await;
            assert_eq!((reply.status, reply.code()), (400, "invalid_request".into()), "{port}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_not_there_has_no_ports() {
    World::run(async |world| {
        for path in ["ports", "ports/80/", "ports/80/x"] {
            let reply = world.get(&format!("/api/sessions/absent/{path}")).await;
            assert_eq!((reply.status, reply.code()), (404, "not_found".to_owned()), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn plain_bytes_have_to_be_asked_for() {
    World::run(async |world| {
        let id = world.session().await;

        let reply = world.get(&format!("/api/sessions/{id}/ports/80")).await;

        assert_eq!((reply.status, reply.code()), (426, "upgrade_required".to_owned()));
        assert_eq!(reply.headers["upgrade"], "tcp");
    })
    .await;
}

#[tokio::test]
async fn methods_that_would_tell_what_was_sent_are_refused() {
    World::run(async |world| {
        let id = world.session().await;

        for method in ["TRACE", "PROPFIND"] {
            let uri = format!("/api/sessions/{id}/ports/80/");
            let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
            let (mut parts, body) = request.into_parts();
            parts.extensions.insert(atoll_api::Peer::Operator { uid: 0 });
            let reply = world.send(Request::from_parts(parts, body)).await;
            assert_eq!(reply.status, 405, "{method}");
        }
    })
    .await;
}
