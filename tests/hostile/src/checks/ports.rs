//! K12: ports a guest takes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Stdio,
    sync::Arc,
};

use anyhow::{Context as _, Result};
use rustix::net::{AddressFamily, SocketType, sockopt};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _},
    net::{TcpListener, TcpStream},
};

use super::refused;
use crate::{
    check::{Check, check, claim},
    ground::{PATIENCE, probe},
    stage::{Place, Stage},
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("K12", "a_port_taken_inside_lures_nobody_outside", lure)
            .against("the host, as nobody"),
        check("K12", "nothing_of_ours_listens_where_guests_could_take_its_place", listeners)
            .against("the host, as nobody, and a listener of its own"),
    ]
}

/// What a guest says to whoever calls it.
const WORD: &str = "lured";

/// A guest listens at the port of a service of the host, at every address, ready to share it. Those
/// who call the service reach the service, and nobody next door reaches the guest. Without a
/// sandbox, whoever calls the port reaches the guest.
async fn lure(stage: Arc<Stage>) -> Result<()> {
    let service = shared_port()?;
    let port = service.local_addr()?.port();
    match stage.place(stage.usual()).await? {
        Place::Bare(bare) => {
            drop(service);
            let mut command = bare.command(&["lure", &port.to_string(), WORD]);
            let mut child = command.stdin(Stdio::piped()).spawn()?;
            let stdout = child.stdout.take().context("a pipe")?;
            let line = tokio::io::BufReader::new(stdout).lines().next_line().await?;
            let told: Value = serde_json::from_str(&line.context("no line")?)?;
            anyhow::ensure!(told[format!("4 {port}")] == "ok", "it does not listen: {told}");
            let heard = call(port, None).await;
            drop(child.stdin.take());
            child.wait().await?;
            claim(heard? != WORD, || "the guest answers outside".to_owned())
        }
        Place::Inside(ground) => {
            let command = probe(&["lure", &port.to_string(), WORD]).with_stdin();
            let (guest, line) = ground.start_and_hear(command).await?;
            let told: Value = serde_json::from_str(&line)?;
            anyhow::ensure!(told[format!("4 {port}")] == "ok", "it does not listen: {told}");
            // As many as a shared port would surely send some of elsewhere.
            for _ in 0..40 {
                let heard = call(port, Some(&service)).await?;
                claim(heard.is_empty(), || format!("the guest answers outside: {heard}"))?;
            }
            let next = stage.sandbox(stage.usual()).await?;
            let near = next.probe(&["reach", &format!("127.0.0.1:{port}")]).await?;
            refused(&near_streams(near), &["ECONNREFUSED"])?;
            ground.sandbox.close_stdin(guest).await?;
            ground.follow(guest, atoll_engine::Offsets::default()).await?;
            Ok(())
        }
    }
}

/// A datagram "connects" wherever there is a route.
fn near_streams(mut told: Value) -> Value {
    if let Some(attempts) = told.as_object_mut() {
        attempts.retain(|name, _| name.starts_with("tcp "));
    }
    told
}

/// A listener of the host that would share its port with others of its user.
fn shared_port() -> Result<TcpListener> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    rustix::net::listen(&socket, 64)?;
    let listener = std::net::TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(TcpListener::from_std(listener)?)
}

/// Calls a port of the host and returns what is said there; nothing if it is the service that is
/// called.
async fn call(port: u16, service: Option<&TcpListener>) -> Result<String> {
    let called = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        let mut buffer = [0; 16];
        let count = match service {
            None => stream.read(&mut buffer).await?,
            Some(service) => tokio::select! {
                accepted = service.accept() => accepted.map(|_| 0)?,
                count = stream.read(&mut buffer) => count?,
            },
        };
        anyhow::Ok(String::from_utf8_lossy(&buffer[..count]).into_owned())
    };
    tokio::time::timeout(PATIENCE, called).await.context("nobody answers")?
}

/// Whatever is not there cannot be taken: no socket listens inside before a guest makes one, except
/// where no guest gets to.
async fn listeners(stage: Arc<Stage>) -> Result<()> {
    let place = stage.place(stage.usual()).await?;
    let _own = TcpListener::bind("127.0.0.1:0").await?;
    let told = place.probe(&["listeners"]).await?;
    let mut found: Vec<String> =
        told.as_array().context("listeners")?.iter().map(ToString::to_string).collect();
    if let Place::Inside(ground) = &place {
        let mut open = Vec::new();
        for socket in found {
            let path = socket.trim_matches('"').strip_prefix("unix /").unwrap_or_default();
            let line = format!("[ -n '{path}' ] && ! ls '/{path}' 2> /dev/null; echo $?");
            if ground.shell(&line).await?.trim() != "0" {
                open.push(socket);
            }
        }
        found = open;
    }
    claim(found.is_empty(), || format!("these listen: {found:?}"))
}
