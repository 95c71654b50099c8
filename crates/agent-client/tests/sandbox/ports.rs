//! Tunnels over agents that are honest, silent or hostile.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
    time::Duration,
};

use atoll_agent_protocol::{
    message::{Done, Failure, FailureKind, Upload, request::Call, response::Answer, upload::Part},
    mux::Stream,
};
use atoll_engine::{Error, ErrorKind, MAX_TUNNELS, Ports as _, Sandbox as _};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::stage::{Place, Script, honest_but, say};

/// A place whose agent does this with connections to ports.
fn connecting(
    answer: impl Fn(Stream) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> Arc<Place> {
    honest_but(&Arc::default(), move |call, stream| match call {
        Call::Connect(_) => Break(answer(stream)),
        call => Continue((call, stream)),
    })
}

fn held(error: &std::io::Error) -> ErrorKind {
    error.get_ref().and_then(|held| held.downcast_ref::<Error>()).unwrap().kind()
}

#[tokio::test]
async fn bytes_go_to_the_agent_and_come_back() {
    let place = connecting(|stream| {
        Box::pin(async move {
            say(&stream, Answer::Done(Done::default())).await;
            while let Ok(Some(Upload { part: Some(Part::Chunk(data)) })) = stream.recv().await {
                say(&stream, Answer::Chunk(data)).await;
            }
            stream.finish();
        })
    });
    let sandbox = place.connect_to().await.unwrap();
    let tunnel = sandbox.connect(80).await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(tunnel);

    let sent: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
    let mut back = Vec::new();
    let (written, read) = tokio::join!(
        async {
            writer.write_all(&sent).await?;
            writer.shutdown().await
        },
        reader.read_to_end(&mut back)
    );

    written.unwrap();
    read.unwrap();
    assert!(back == sent, "{} bytes", back.len());
    // Past the end there is nothing, however often one asks.
    assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(held(&writer.write_all(b"x").await.unwrap_err()), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_broken_connection_is_told_once_and_then_over() {
    let place = connecting(|stream| {
        Box::pin(async move {
            say(&stream, Answer::Done(Done::default())).await;
            say(&stream, Answer::Chunk("last".into())).await;
            let failure = Failure { kind: FailureKind::NotFound.into(), message: "reset".into() };
            say(&stream, Answer::Error(failure)).await;
            stream.finish();
        })
    });
    let sandbox = place.connect_to().await.unwrap();
    let mut tunnel = sandbox.connect(80).await.unwrap();

    let mut seen = Vec::new();
    let error = tunnel.read_to_end(&mut seen).await.unwrap_err();

    assert_eq!((seen, held(&error)), (b"last".to_vec(), ErrorKind::NotFound));
    assert_eq!(tunnel.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn nonsense_among_the_bytes_is_told() {
    let place = connecting(|stream| {
        Box::pin(async move {
            say(&stream, Answer::Done(Done::default())).await;
            say(&stream, Answer::Done(Done::default())).await;
            stream.given_up().await;
        })
    });
    let sandbox = place.connect_to().await.unwrap();
    let mut tunnel = sandbox.connect(80).await.unwrap();

    let error = tunnel.read(&mut [0; 8]).await.unwrap_err();

    assert_eq!(held(&error), ErrorKind::Internal);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_answer_is_waited_for_no_longer_than_any() {
    let place = connecting(|stream| Box::pin(async move { stream.given_up().await }));
    let sandbox = place.connect_to().await.unwrap();

    let error = sandbox.connect(80).await.err().unwrap();

    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_tunnel_takes_its_place_until_it_is_dropped() {
    let place = connecting(|stream| {
        Box::pin(async move {
            say(&stream, Answer::Done(Done::default())).await;
            stream.given_up().await;
        })
    });
    let sandbox = place.connect_to().await.unwrap();
    let mut tunnels = Vec::new();
    for _ in 0..MAX_TUNNELS {
        tunnels.push(sandbox.connect(80).await.unwrap());
    }

    assert_eq!(sandbox.connect(80).await.err().unwrap().kind(), ErrorKind::Exhausted);
    tunnels.pop();
    sandbox.connect(80).await.unwrap();
}

#[tokio::test]
async fn a_cut_link_and_a_lost_sandbox_are_told_apart() {
    let place = connecting(|stream| {
        Box::pin(async move {
            say(&stream, Answer::Done(Done::default())).await;
            stream.given_up().await;
        })
    });
    let sandbox = place.connect_to().await.unwrap();
    let mut tunnel = sandbox.connect(80).await.unwrap();
    place.cut();
    assert_eq!(held(&tunnel.read(&mut [0; 8]).await.unwrap_err()), ErrorKind::Internal);

    let mut tunnel = sandbox.connect(80).await.unwrap();
    sandbox.destroy().await.unwrap();
    let late = tokio::time::timeout(Duration::from_secs(30), tunnel.read(&mut [0; 8])).await;
    assert_eq!(held(&late.unwrap().unwrap_err()), ErrorKind::Lost);
    assert_eq!(sandbox.connect(80).await.err().unwrap().kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn impossible_ports_are_nonsense() {
    for ports in [vec![65_536], vec![80, 22], vec![80, 80]] {
        let place = honest_but(&Arc::<Script>::default(), move |call, stream| match call {
            Call::Listening(_) => {
                let ports = atoll_agent_protocol::message::Ports { ports: ports.clone() };
                Break(Box::pin(async move { say(&stream, Answer::Ports(ports)).await }))
            }
            call => Continue((call, stream)),
        });
        let sandbox = place.connect_to().await.unwrap();

        assert_eq!(sandbox.listening().await.unwrap_err().kind(), ErrorKind::Internal);
    }
}
