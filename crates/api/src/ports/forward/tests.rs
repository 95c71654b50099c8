use axum::{
    Router,
    body::to_bytes,
    http::{Method, header},
};
use futures_util::{StreamExt as _, stream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::peer::Peer;

const PREFIX: &str = "/api/sessions/s/ports/80";

fn gate() -> Gate {
    Gate { prefix: PREFIX.to_owned(), port: 80, from: None, secure: false }
}

fn settings() -> Settings {
    Settings { port_timeout: Duration::from_mins(1), ..Settings::default() }
}

fn request(method: Method, path: &str, body: impl Into<Body>) -> Request {
    let uri = format!("{PREFIX}{path}");
    Request::builder().method(method).uri(uri).body(body.into()).unwrap()
}

/// The head of what a client sent, to the empty line.
async fn head(stream: &mut DuplexStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// A program that answers so, and what it was asked.
fn program(answer: &'static [u8]) -> (DuplexStream, JoinHandle<(String, DuplexStream)>) {
    let (ours, mut theirs) = duplex(1 << 16);
    let asked = tokio::spawn(async move {
        let head = head(&mut theirs).await;
        theirs.write_all(answer).await.unwrap();
        (head, theirs)
    });
    (ours, asked)
}

/// How a request ended: its status and its body.
async fn ended(result: Result<Response>) -> (u16, String) {
    let response = result.unwrap_or_else(axum::response::IntoResponse::into_response);
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.into()).unwrap())
}

#[tokio::test]
async fn a_request_and_its_answer_are_passed_on() {
    let (stream, asked) = program(b"HTTP/1.1 201 Made\r\nContent-Length: 4\r\nX-A: 1\r\n\r\ndone");
    let mut request = request(Method::PATCH, "/a%2Fb/../c?d=%20&e", "hello");
    request.headers_mut().insert(header::CONTENT_LENGTH, 5.into());

    let response = forward(&gate(), request, stream, &settings()).await.unwrap();

    assert_eq!(response.headers()["x-a"], "1");
    assert_eq!(response.headers()["x-atoll-port"], "80");
    assert_eq!(ended(Ok(response)).await, (201, "done".to_owned()));
    let (head, mut theirs) = asked.await.unwrap();
    assert!(head.starts_with("PATCH /a%2Fb/../c?d=%20&e HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("host: localhost:80\r\n"), "{head}");
    assert!(head.contains("content-length: 5\r\n"), "{head}");
    let mut rest = String::new();
    theirs.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "hello");
}

#[tokio::test]
async fn an_answer_comes_as_it_is_written() {
    let (stream, asked) = program(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let response = forward(&gate(), request(Method::GET, "/", ""), stream, &settings()).await;
    let mut body = response.unwrap().into_body().into_data_stream();
    let (_, mut theirs) = asked.await.unwrap();

    for word in ["one", "two"] {
        theirs.write_all(format!("3\r\n{word}\r\n").as_bytes()).await.unwrap();
        assert_eq!(body.next().await.unwrap().unwrap(), word);
    }
    // And ends with who reads it.
    drop(body);
    assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn an_answer_cut_short_is_not_taken_for_whole() {
    let (stream, asked) = program(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    let response = forward(&gate(), request(Method::GET, "/", ""), stream, &settings()).await;
    drop(asked.await.unwrap());

    assert!(to_bytes(response.unwrap().into_body(), 100).await.is_err());
}

#[tokio::test]
async fn what_is_no_answer_is_a_bad_gateway() {
    let long: &[u8] = Box::leak(vec![b'x'; 1 << 20].into_boxed_slice());
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(1000));
    for (answer, why) in [
        (&b"SSH-2.0-x\r\n\r\n"[..], "does not answer in HTTP"),
        (b"HTTP/1.1 999999 What\r\n\r\n", "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", "does not answer in HTTP"),
        (b"", "hung up before it answered"),
        (b"HTTP/1.1 200 O", "hung up before it answered"),
        (b"HTTP/1.1 101 No\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "what nobody asked"),
    ] {
        let (ours, mut theirs) = duplex(1 << 16);
        tokio::spawn(async move {
            head(&mut theirs).await;
            theirs.write_all(answer).await
        });
        let result = forward(&gate(), request(Method::GET, "/", ""), ours, &settings()).await;
        let (status, body) = ended(result).await;
        assert_eq!(status, 502, "{body}");
        assert!(body.contains("bad_gateway") && body.contains(why), "{body}");
    }
    for head_of in [[b"HTTP/1.1 200 OK\r\nA: ", long].concat(), many.into_bytes()] {
        let (ours, mut theirs) = duplex(1 << 16);
        tokio::spawn(async move {
            head(&mut theirs).await;
            theirs.write_all(&head_of).await
        });
        let result = forward(&gate(), request(Method::GET, "/", ""), ours, &settings()).await;
        let (status, body) = ended(result).await;
        assert_eq!(status, 502, "{body}");
        assert!(body.contains("too long"), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_answer_is_given_up() {
    let (stream, asked) = program(b"");
    let silent = forward(&gate(), request(Method::GET, "/", ""), stream, &settings()).await;
    let (status, body) = ended(silent).await;
    assert_eq!(status, 504, "{body}");
    assert!(body.contains("timed_out"), "{body}");
    drop(asked);

    let (ours, mut theirs) = duplex(1 << 16);
    tokio::spawn(async move {
        head(&mut theirs).await;
        // A line every second, for ever.
        theirs.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        while theirs.write_all(b"A: b\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let slow = forward(&gate(), request(Method::GET, "/", ""), ours, &settings()).await;
    assert_eq!(ended(slow).await.0, 504);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_long_to_send_is_waited_for() {
    let (ours, mut theirs) = duplex(1 << 16);
    let pieces = stream::iter(0..10).then(|_| async {
        tokio::time::sleep(Duration::from_secs(50)).await;
        Ok::<_, std::io::Error>("piece")
    });
    let request = request(Method::POST, "/", Body::from_stream(pieces.boxed()));
    tokio::spawn(async move {
        head(&mut theirs).await;
        let mut seen = String::new();
        while !seen.ends_with("0\r\n\r\n") {
            seen.push(theirs.read_u8().await.unwrap().into());
        }
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", seen.len() / 10);
        theirs.write_all(answer.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    });

    let answer = forward(&gate(), request, ours, &settings()).await;

    assert_eq!(ended(answer).await, (200, "10".to_owned()));
}

/// A server whose every request goes to a program that answers so.
fn served(answer: &'static [u8]) -> (DuplexStream, JoinHandle<(String, DuplexStream)>) {
    let (client, asked, _) = held(answer);
    (client, asked)
}

/// The same, and whether the connection is still held.
fn held(
    answer: &'static [u8],
) -> (DuplexStream, JoinHandle<(String, DuplexStream)>, std::sync::Weak<()>) {
    let held = Arc::new(());
    let whether = Arc::downgrade(&held);
    let (client, server) = duplex(1 << 16);
    let (stream, asked) = program(answer);
    let stream = Arc::new(Mutex::new(Some(stream)));
    let handler = move |request: Request| async move {
        let stream = stream.lock().unwrap().take().unwrap();
        let result = forward(&gate(), request, stream, &settings()).await;
        result.unwrap_or_else(axum::response::IntoResponse::into_response)
    };
    let router = Router::new().fallback(handler);
    let peer = Peer::Operator { uid: 0 };
    tokio::spawn(crate::serve::connection(server, held, peer, router, CancellationToken::new()));
    (client, asked, whether)
}

const ASK: &[u8] = b"GET /api/sessions/s/ports/80/chat HTTP/1.1\r\nHost: localhost\r\n\
    Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";

#[tokio::test]
async fn a_websocket_becomes_bytes_both_ways() {
    let (mut client, asked, held) = held(
        b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
        Sec-WebSocket-Accept: a\r\n\r\nfirst",
    );
    client.write_all(ASK).await.unwrap();

    let answer = head(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(answer.contains("sec-websocket-accept: a\r\n"), "{answer}");
    let mut first = [0; 5];
    client.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"first");
    // It counts as a connection for as long as it lasts.
    assert!(held.upgrade().is_some());
    let (asked, mut theirs) = asked.await.unwrap();
    assert!(asked.contains("upgrade: websocket\r\n"), "{asked}");
    assert!(asked.contains("sec-websocket-key: k\r\n"), "{asked}");
    client.write_all(b"ping").await.unwrap();
    client.shutdown().await.unwrap();
    let mut seen = String::new();
    theirs.read_to_string(&mut seen).await.unwrap();
    assert_eq!(seen, "ping");
    theirs.write_all(b"pong").await.unwrap();
    drop(theirs);
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "pong");
    while held.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_program_may_decline_a_websocket() {
    let (mut client, asked) = served(b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
    client.write_all(ASK).await.unwrap();

    let answer = head(&mut client).await;

    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    drop(asked);
}

#[tokio::test]
async fn no_other_protocol_is_passed_on() {
    let (mut client, asked) = served(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let ask = String::from_utf8(ASK.to_vec()).unwrap().replace("websocket", "h2c");
    client.write_all(ask.as_bytes()).await.unwrap();

    assert!(head(&mut client).await.starts_with("HTTP/1.1 200 "));
    let (asked, _) = asked.await.unwrap();
    assert!(!asked.contains("h2c") && !asked.contains("upgrade"), "{asked}");
}
