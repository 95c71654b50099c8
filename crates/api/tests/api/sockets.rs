//! Over real sockets, with the real client.

use std::{os::unix::fs::PermissionsExt as _, time::Instant};

use atoll_api::{Listener, Tls, UnixSocket, serve};
use atoll_client::{Client, Error, Event, Filter, Trust};
use atoll_types::{
    e2b,
    execution::{CommandLine, ExecuteRequest, OneShotRequest},
    key::{CreateKey, Scope},
    process::{StartProcess, Stream},
    quantity::Span,
    session::CreateSession,
};
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::world::{PATIENCE, World};

/// A server that ends with the world's `closing`.
pub(crate) async fn tcp(world: &World, tls: Option<Tls>) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let listeners = vec![Listener::Tcp(listener, tls)];
    (port, tokio::spawn(serve(listeners, world.router.clone(), world.closing.clone())))
}

async fn stopped(world: &World, server: JoinHandle<()>) {
    world.closing.cancel();
    tokio::time::timeout(PATIENCE, server).await.expect("the server stops").unwrap();
}

fn shell(line: &str) -> CommandLine {
    CommandLine::Shell(line.to_owned())
}

/// Every method of the client once.
async fn tour(client: &Client) {
    assert_eq!(client.health().await.unwrap().status, "ok");
    assert_eq!(client.version().await.unwrap().version, "1.2.3");
    assert_eq!(client.engines().await.unwrap()[0].name, "local");
    assert!(client.environments().await.unwrap().iter().any(|found| found.name == "python"));
    assert!(client.openapi().await.unwrap().contains("\"Atoll\""));
    assert!(client.server_metrics().await.unwrap().contains("atoll_http_requests_total"));

    let made = CreateKey { name: "tour".to_owned(), scopes: Some(vec![Scope::Read]) };
    let key = client.create_key(&made).await.unwrap();
    assert!(client.keys().await.unwrap().iter().any(|found| found.id == key.about.id));
    client.remove_key(&key.about.id).await.unwrap();

    let request = CreateSession { trusted: true, ..Default::default() };
    let session = client.create_session(&request).await.unwrap();
    let id = &session.session_id;
    assert_eq!(client.session(id).await.unwrap().sandbox_id, session.sandbox_id);
    let filter = Filter { state: Some(session.state), limit: Some(5), ..Default::default() };
    assert_eq!(client.sessions(&filter).await.unwrap().sessions.len(), 1);
    client.set_timeout(id, Span::seconds(600.0).unwrap()).await.unwrap();
    client.metrics(id).await.unwrap();
    let run = ExecuteRequest { command: Some(shell("echo hi")), ..Default::default() };
    assert_eq!(client.execute(id, &run).await.unwrap().stdout, "hi\n");
    let once =
        OneShotRequest { command: Some(shell("echo once")), trusted: true, ..Default::default() };
    assert_eq!(client.execute_once(&once).await.unwrap().stdout, "once\n");

    files(client, id).await;
    processes(client, id).await;
    crate::terminals::tour(client, id).await;

    let code = e2b::Execute {
        session_id: id.clone(),
        code: "print(6 * 7)".to_owned(),
        language: None,
        timeout: None,
    };
    assert_eq!(client.e2b_execute(&code).await.unwrap().stdout, "42\n");

    client.delete_session(id, Some(&session.sandbox_id)).await.unwrap();
    let again = client.delete_session(id, None).await.unwrap_err();
    let again = again.refused().unwrap();
    assert_eq!((again.status, again.code.as_str()), (404, "not_found"));
}

async fn files(client: &Client, id: &atoll_types::id::SessionId) {
    let piece = bytes::Bytes::from(vec![7; 1 << 16]);
    let content = futures_util::stream::iter(vec![piece.clone(); 64]).map(Ok);
    client.write_file(id, "d/big & odd?", content).await.unwrap();
    let read: Vec<_> =
        client.read_file(id, "d/big & odd?").await.unwrap().try_collect().await.unwrap();
    assert!(read.concat() == piece.repeat(64));
    client.write_bytes(id, "small", "1").await.unwrap();
    client.copy_file(id, "small", "copy").await.unwrap();
    client.move_file(id, "copy", "moved").await.unwrap();
    client.set_file_mode(id, "moved", 0o600).await.unwrap();
    client.make_directory(id, "made").await.unwrap();
    assert_eq!(client.stat_file(id, "moved").await.unwrap().mode, 0o600);
    assert_eq!(client.list_files(id, ".").await.unwrap().entries.len(), 4);
    client.remove_file(id, "moved").await.unwrap();
    assert!(!client.file_exists(id, "moved").await.unwrap());
    let write = e2b::WriteFile {
        session_id: id.clone(),
        path: "e2b".to_owned(),
        content: Some("text".to_owned()),
        content_base64: None,
    };
    client.e2b_write_file(&write).await.unwrap();
    let read: Vec<_> = client.e2b_read_file(id, "e2b").await.unwrap().try_collect().await.unwrap();
    assert_eq!(read.concat(), b"text");
    assert_eq!(client.e2b_list_files(id, Some(".")).await.unwrap().entries.len(), 4);
    let absent = client.read_file(id, "absent").await.unwrap_err();
    assert_eq!(absent.code(), Some("not_found"));
}

async fn processes(client: &Client, id: &atoll_types::id::SessionId) {
    let request = StartProcess { command: Some(shell("cat")), stdin: true, ..Default::default() };
    let process = client.start_process(id, &request).await.unwrap().id;
    let events = client.attach_process(id, process, 1, 0).await.unwrap();
    client.write_stdin(id, process, "abc").await.unwrap();
    client.close_stdin(id, process).await.unwrap();
    let events: Vec<_> = events.try_collect().await.unwrap();
    let (end, output) = events.split_last().unwrap();
    assert!(matches!(end, Event::End(end) if end.exit_code == Some(0)), "{end:?}");
    let written: Vec<u8> = output
        .iter()
        .flat_map(|event| match event {
            Event::Output { stream: Stream::Stdout, data, .. } => data.to_vec(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(written, b"bc");

    let request = StartProcess { command: Some(shell("sleep 1000")), ..Default::default() };
    let process = client.start_process(id, &request).await.unwrap().id;
    client.signal_process(id, process, 15).await.unwrap();
    client.kill_process(id, process).await.unwrap();
    assert!(client.processes(id).await.unwrap().iter().any(|found| found.id == process));
    client.process(id, process).await.unwrap();
}

#[tokio::test]
async fn the_client_does_everything_over_the_private_socket() {
    World::run(async |world| {
        let path = world.place.path().join("socket");
        let socket = UnixSocket::bind(&path).unwrap();
        let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
        let listeners = vec![Listener::Unix(socket)];
        let server = tokio::spawn(serve(listeners, world.router.clone(), world.closing.clone()));

        tour(&Client::unix(&path)).await;

        assert_eq!(mode & 0o777, 0o600);
        stopped(world, server).await;
        assert!(!path.exists(), "the socket is removed");
        let gone = Client::unix(&path).health().await.unwrap_err();
        assert!(matches!(gone, Error::Unreachable { .. }), "{gone:?}");
    })
    .await;
}

#[tokio::test]
async fn the_client_does_everything_over_tcp_with_a_key() {
    World::run(async |world| {
        let (port, server) = tcp(world, None).await;
        let key = world.key(&[Scope::Admin]).await;
        let url = format!("http://127.0.0.1:{port}");

        tour(&Client::tcp(&url, &key, &Trust::System).unwrap()).await;

        let wrong = Client::tcp(&url, "wrong", &Trust::System).unwrap();
        assert_eq!(wrong.health().await.unwrap().status, "ok");
        let refused = wrong.version().await.unwrap_err();
        assert_eq!(refused.refused().map(|refused| refused.status), Some(401));
        stopped(world, server).await;
    })
    .await;
}

#[tokio::test]
async fn tls_protects_those_who_know_the_certificate() {
    World::run(async |world| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (certificate, secret) = (made.cert.pem(), made.signing_key.serialize_pem());
        let tls = Tls::from_pem(certificate.as_bytes(), secret.as_bytes()).unwrap();
        let (port, server) = tcp(world, Some(tls)).await;
        let key = world.key(&[Scope::Admin]).await;
        let url = format!("https://localhost:{port}");
        let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();

        let trusting = Client::tcp(&url, &key, &Trust::Pem(certificate.into())).unwrap();
        let doubting = Client::tcp(&url, &key, &Trust::Pem(other.cert.pem().into())).unwrap();
        let plain = Client::tcp(&format!("http://localhost:{port}"), &key, &Trust::System).unwrap();

        tour(&trusting).await;
        assert!(matches!(doubting.health().await, Err(Error::Unreachable { .. })));
        assert!(plain.health().await.is_err());
        stopped(world, server).await;
    })
    .await;
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let one = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
    let two = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
    let (certificate, secret) = (one.cert.pem(), one.signing_key.serialize_pem());

    for (certificate, secret) in [
        (certificate.as_str(), two.signing_key.serialize_pem().as_str()),
        ("", secret.as_str()),
        (certificate.as_str(), ""),
        (secret.as_str(), certificate.as_str()),
    ] {
        assert!(Tls::from_pem(certificate.as_bytes(), secret.as_bytes()).is_err());
    }
}

#[tokio::test]
async fn a_refusal_arrives_though_the_body_was_not_read() {
    World::run(async |world| {
        let (port, server) = tcp(world, None).await;
        let key = world.key(&[Scope::Admin]).await;
        let url = format!("http://127.0.0.1:{port}");
        let client = Client::tcp(&url, &key, &Trust::System).unwrap();
        let stranger = Client::tcp(&url, "wrong", &Trust::System).unwrap();
        let long = CreateSession { environment: Some("x".repeat(6 << 20)), ..Default::default() };
        let absent = "absent".parse().unwrap();

        for _ in 0..20 {
            let large = client.create_session(&long).await.unwrap_err();
            let upload = stranger.write_bytes(&absent, "x", vec![0; 6 << 20]).await.unwrap_err();

            assert_eq!(large.code(), Some("too_large"), "{large:?}");
            assert_eq!(upload.code(), Some("unauthorized"), "{upload:?}");
        }
        stopped(world, server).await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_what_it_runs() {
    World::run(async |world| {
        let (port, server) = tcp(world, None).await;
        let key = world.key(&[Scope::Admin]).await;
        let client =
            Client::tcp(&format!("http://127.0.0.1:{port}"), &key, &Trust::System).unwrap();
        let request = CreateSession { trusted: true, ..Default::default() };
        let id = client.create_session(&request).await.unwrap().session_id;
        let run = ExecuteRequest { command: Some(shell("sleep 1000")), ..Default::default() };

        let (asking, asked) = (client.clone(), id.clone());
        let execution = tokio::spawn(async move { asking.execute(&asked, &run).await });
        until(async || client.processes(&id).await.unwrap().len() == 1).await;
        execution.abort();

        until(async || client.processes(&id).await.unwrap()[0].end.is_some()).await;
        let reason = client.processes(&id).await.unwrap()[0].end.clone().unwrap().reason;
        assert_eq!(reason, atoll_types::execution::Reason::Cancelled);
        stopped(world, server).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_stops_though_someone_follows_a_process() {
    World::run(async |world| {
        let (port, server) = tcp(world, None).await;
        let key = world.key(&[Scope::Admin]).await;
        let client =
            Client::tcp(&format!("http://127.0.0.1:{port}"), &key, &Trust::System).unwrap();
        let request = CreateSession { trusted: true, ..Default::default() };
        let id = client.create_session(&request).await.unwrap().session_id;
        let request =
            StartProcess { command: Some(shell("echo up; sleep 1000")), ..Default::default() };
        let process = client.start_process(&id, &request).await.unwrap().id;
        let mut events = client.attach_process(&id, process, 0, 0).await.unwrap();
        assert!(matches!(events.next().await, Some(Ok(Event::Output { .. }))));

        stopped(world, server).await;

        let end = events.next().await.unwrap();
        assert!(matches!(end, Err(Error::Broken(_))), "{end:?}");
        assert!(events.next().await.is_none());
    })
    .await;
}

/// Waits until `holds`, and fails if it never does.
async fn until(holds: impl AsyncFn() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < PATIENCE, "it never happened");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
