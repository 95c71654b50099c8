//! Connections to ports. These agents share the host's loopback, so the tests themselves listen.

use atoll_agent_protocol::{
    message::{
        FailureKind, Nothing, OfPort, Upload, request::Call, response::Answer, upload::Part,
    },
    mux::Stream,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::support::{Agent, DEADLINE, answer, within};

async fn connect(agent: &Agent, port: u16) -> Stream {
    agent.open(Call::Connect(OfPort { port: port.into() })).await
}

async fn send(stream: &Stream, data: &'static [u8]) {
    let part = Some(Part::Chunk(data.into()));
    stream.send(&Upload { part }).await.unwrap();
}

async fn next(stream: &Stream) -> Option<Answer> {
    within(answer(stream)).await.transpose().unwrap()
}

async fn failure(stream: &Stream) -> FailureKind {
    within(answer(stream)).await.expect("an answer").expect_err("a failure").kind()
}

/// A listener, a call to it that was answered, and the connection it made.
async fn pair(agent: &Agent) -> (Stream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let stream = connect(agent, listener.local_addr().unwrap().port()).await;
    let (socket, _) = timeout(DEADLINE, listener.accept()).await.unwrap().unwrap();
    assert!(matches!(next(&stream).await, Some(Answer::Done(_))));
    (stream, socket)
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_way_ends_alone() {
    let agent = Agent::new().await;
    let (stream, mut socket) = pair(&agent).await;

    send(&stream, b"ping").await;
    stream.finish();
    let mut seen = String::new();
    socket.read_to_string(&mut seen).await.unwrap();
    assert_eq!(seen, "ping");

    socket.write_all(b"pong").await.unwrap();
    drop(socket);
    assert_eq!(next(&stream).await, Some(Answer::Chunk("pong".into())));
    assert_eq!(next(&stream).await, None);
}

#[tokio::test]
async fn a_host_that_gives_up_ends_the_connection() {
    let agent = Agent::new().await;
    let (stream, mut socket) = pair(&agent).await;

    drop(stream);

    let end = timeout(DEADLINE, socket.read(&mut [0; 8])).await.unwrap();
    assert!(!matches!(end, Ok(1..)), "{end:?}");
}

#[tokio::test]
async fn a_connection_reset_is_told() {
    let agent = Agent::new().await;
    let (stream, socket) = pair(&agent).await;

    socket.set_zero_linger().unwrap();
    drop(socket);

    assert_eq!(failure(&stream).await, FailureKind::NotFound);
}

#[tokio::test]
async fn what_was_sent_before_a_reset_still_comes() {
    let agent = Agent::new().await;
    let (stream, mut socket) = pair(&agent).await;
    // Unread bytes make the kernel reset what is closed, as a server that answers early does.
    send(&stream, &[0; 1024]).await;
    socket.readable().await.unwrap();

    socket.write_all(b"too much").await.unwrap();
    drop(socket);

    assert_eq!(next(&stream).await, Some(Answer::Chunk("too much".into())));
}

#[tokio::test]
async fn the_other_loopback_is_tried_too() {
    let agent = Agent::new().await;
    // Not every host has that family.
    let Ok(listener) = TcpListener::bind(("::1", 0)).await else { return };
    let stream = connect(&agent, listener.local_addr().unwrap().port()).await;

    assert!(matches!(next(&stream).await, Some(Answer::Done(_))));
}

#[tokio::test]
async fn what_is_no_port_is_invalid() {
    let agent = Agent::new().await;

    for port in [0, 65_536, u32::MAX] {
        let stream = agent.open(Call::Connect(OfPort { port })).await;
        assert_eq!(failure(&stream).await, FailureKind::Invalid, "{port}");
    }
}

#[tokio::test]
async fn a_closed_port_is_not_found() {
    let agent = Agent::new().await;
    // Bound and not listened on: nobody else has it meanwhile.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let stream = connect(&agent, socket.local_addr().unwrap().port()).await;

    assert_eq!(failure(&stream).await, FailureKind::NotFound);
}

#[tokio::test]
async fn a_listener_is_listed() {
    let agent = Agent::new().await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = u32::from(listener.local_addr().unwrap().port());

    let stream = agent.open(Call::Listening(Nothing {})).await;

    let Some(Answer::Ports(told)) = next(&stream).await else { panic!("no ports") };
    assert!(told.ports.contains(&port) && told.ports.is_sorted(), "{:?}", told.ports);
}
