//! Servers that do not keep their word.

use atoll_client::{Client, Error, Event, Trust};
use futures_util::StreamExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// A client of a server that gives this answer to one request after another, and hangs up.
async fn answered(answer: &'static str) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
            // Until the client has hung up too, so that nothing on its way is destroyed.
            while stream.read(&mut request).await.is_ok_and(|read| read > 0) {}
        }
    });
    Client::tcp(&url, "key", &Trust::System).expect("a client")
}

#[tokio::test]
async fn a_download_that_is_cut_is_not_taken_for_whole() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
    let client = answered(answer).await;

    let mut content = client.read_file(&"s".parse().unwrap(), "file").await.unwrap();

    assert_eq!(content.next().await.unwrap().unwrap(), "abc");
    assert!(matches!(content.next().await, Some(Err(Error::Broken(_)))));
}

#[tokio::test]
async fn events_that_end_before_the_process_end_in_an_error() {
    let client = answered(concat!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
        "event: output\nid: 2:0\n",
        "data: {\"type\":\"output\",\"stream\":\"stdout\",\"offset\":0,\"data\":\"aGk=\"}\n\n",
    ))
    .await;
    let process = atoll_types::id::ProcessId(1);

    let mut events = client.attach_process(&"s".parse().unwrap(), process, 0, 0).await.unwrap();

    let first = events.next().await.unwrap().unwrap();
    assert!(matches!(first, Event::Output { data, .. } if data == "hi"));
    assert!(matches!(events.next().await, Some(Err(Error::Broken(_)))));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_stream_that_fails_says_why() {
    let client = answered(concat!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
        "event: error\n",
        "data: {\"error\":{\"code\":\"session_lost\",\"message\":\"gone\"}}\n\n",
    ))
    .await;
    let process = atoll_types::id::ProcessId(1);

    let mut events = client.attach_process(&"s".parse().unwrap(), process, 0, 0).await.unwrap();

    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some("session_lost"));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn an_answer_that_is_not_atolls_is_told_as_such() {
    let page = answered("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>").await;
    let odd = answered("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>").await;
    let noise = answered("SSH-2.0-OpenSSH\r\n").await;

    let page = page.version().await.unwrap_err();
    assert_eq!(page.refused().map(|refused| refused.status), Some(502));
    assert!(matches!(odd.version().await, Err(Error::Garbled(_))));
    assert!(matches!(noise.version().await, Err(Error::Broken(_))));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);

    let error = Client::tcp(&url, "key", &Trust::System).unwrap().version().await.unwrap_err();

    assert!(matches!(error, Error::Unreachable { at, .. } if at == url));
}
