//! `atoll port-forward`: ports of a sandbox as ports of this machine.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
    sync::Arc,
};

use atoll_client::Client;
use atoll_types::id::SessionId;
use clap::Args;
use serde::Serialize;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    failure::{Failure, Result},
    invocation::Invocation,
    printer::Printer,
    signal::Stop,
};

/// Reach ports of a session from this machine, until ^C
///
/// Whoever can connect to the address can use the sandbox's port: no key is asked for. Only
/// programs on this machine can, unless --address says otherwise.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  atoll port-forward SESSION 8000             # http://127.0.0.1:8000
  atoll port-forward SESSION 9000:8000 5432   # two ports, one under another number
  atoll port-forward SESSION 0:8000           # any free port, which is printed")]
pub(crate) struct Arguments {
    /// The session
    session: SessionId,
    /// The sandbox's port, with this machine's before it if that should be another
    #[arg(required = true, value_name = "[LOCAL:]PORT")]
    ports: Vec<Forward>,
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// Tell of each connection
    #[arg(long, short)]
    verbose: bool,
}

/// One port of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Forward {
    /// 0 for any that is free.
    local: u16,
    port: u16,
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let wrong = || format!("`{text}` is not a port: write [LOCAL:]PORT, as in 9000:8000");
            text.parse::<u16>().map_err(|_| wrong())
        };
        let (local, port) = match text.split_once(':') {
            Some(("", port)) => (0, number(port)?),
            Some((local, port)) => (number(local)?, number(port)?),
            None => (number(text)?, number(text)?),
        };
        if port == 0 {
            return Err("the sandbox's port is a number from 1 to 65535".to_owned());
        }
        Ok(Self { local, port })
    }
}

/// What is told of a port that can be reached.
#[derive(Debug, Serialize)]
struct Reachable {
    address: SocketAddr,
    port: u16,
}

/// What every connection needs.
struct Way {
    client: Client,
    session: SessionId,
    printer: Printer,
    verbose: bool,
}

pub(crate) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<u8> {
    let Arguments { session, ports, address, verbose } = arguments;
    let printer = invocation.printer;
    let mut stop = Stop::new()?;
    let client = invocation.client().await?;
    // A session that is not there, or can have no ports, is better told now than to a browser.
    client.ports(&session).await?;
    let mut listeners = Vec::new();
    for forward in ports {
        listeners.push((bind(address, forward).await?, forward.port));
    }
    if !address.is_loopback() {
        printer.note(format!("whoever can reach {address} can use these ports, without a key"));
    }
    let way = Arc::new(Way { client, session, printer, verbose });
    let mut listening = JoinSet::new();
    for (listener, port) in listeners {
        let address = local(&listener)?;
        printer.line(&Reachable { address, port }, || format!("{address} -> {port}"))?;
        listening.spawn(serve(Arc::clone(&way), listener, port));
    }
    tokio::select! {
        // That is how one ends it.
        _ = stop.asked() => Ok(0),
        Some(ended) = listening.join_next() => Err(match ended {
            Ok(failure) => failure,
            Err(_) => Failure::new("forwarding broke off"),
        }),
    }
}

async fn bind(address: IpAddr, forward: Forward) -> Result<TcpListener> {
    let at = SocketAddr::new(address, forward.local);
    TcpListener::bind(at).await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => "the port is in use",
            io::ErrorKind::PermissionDenied => "ports below 1024 are for root",
            io::ErrorKind::AddrNotAvailable => "this machine has no such address",
            _ => return Failure::new(format!("cannot listen on {at}: {error}")),
        };
        Failure::new(format!("cannot listen on {at}: {why}"))
            .hint(format!("`0:{}` takes any free port", forward.port))
    })
}

fn local(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(|error| Failure::new(format!("cannot listen: {error}")))
}

/// Passes connections on, until the session has ended.
async fn serve(way: Arc<Way>, listener: TcpListener, port: u16) -> Failure {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, from)) => {
                    connections.spawn(pass_on(Arc::clone(&way), socket, from, port));
                }
                Err(error) => {
                    // Out of descriptors, most likely: others will be closed.
                    way.printer.note(format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Ok(Err(failure)) = ended {
                    return failure;
                }
            }
        }
    }
}

/// Passes one connection on, to its end. Fails if no other would do better.
async fn pass_on(way: Arc<Way>, mut socket: TcpStream, from: SocketAddr, port: u16) -> Result {
    let say = |what: &str| {
        if way.verbose {
            way.printer.note(format!("{from} -> {port}: {what}"));
        }
    };
    let _ = socket.set_nodelay(true);
    let mut tunnel = match way.client.connect_port(&way.session, port).await {
        Ok(tunnel) => tunnel,
        Err(error) if matches!(error.code(), Some("not_found" | "session_lost")) => {
            return Err(error.into());
        }
        Err(error) => {
            let failure = Failure::from(error);
            way.printer.note(format!("{from} -> {port}: {failure}"));
            return Ok(());
        }
    };
    say("connected");
    match tokio::io::copy_bidirectional(&mut socket, &mut tunnel).await {
        Ok((up, down)) => say(&format!("closed after {up} bytes sent and {down} received")),
        Err(error) => say(&format!("broke: {error}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_have_another_number_here() {
        for (text, local, port) in
            [("80", 80, 80), ("8080:80", 8080, 80), ("0:80", 0, 80), (":80", 0, 80)]
        {
            assert_eq!(text.parse(), Ok(Forward { local, port }), "{text}");
        }
    }

    #[test]
    fn what_is_no_port_is_refused() {
        for text in ["", "0", "80:0", "a", "65536", "80:", "1:2:3", "-1", "80:x", "8.0"] {
            assert!(text.parse::<Forward>().is_err(), "{text}");
        }
    }
}
