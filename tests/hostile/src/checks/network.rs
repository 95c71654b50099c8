//! K: the network. Nothing is ever sent beyond the host's own loopback.

use std::{
    fs,
    net::{Ipv6Addr, TcpListener},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::refused;
use crate::{
    check::{Check, check, claim},
    stage::{Place, Stage},
};

/// How a place without a network answers at once; the last is for addresses of a link that needs
/// to be named.
const UNREACHABLE: [&str; 6] =
    ["ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "ECONNREFUSED", "EAFNOSUPPORT", "EINVAL"];

pub(super) fn checks() -> Vec<Check> {
    let bare = "the host, as nobody, and a listener on its loopback";
    vec![
        check("K01", "nothing_outside_is_reached", outside).against(bare),
        check("K01", "there_is_one_interface_and_no_raw_socket", surroundings)
            .against("the host, as nobody"),
        check("K02", "no_service_of_the_host_is_reached", services).against(bare),
        check("K03", "no_metadata_service_is_reached", metadata).against(bare),
    ]
}

/// In a control only a listener of our own is tried: the host has a network.
async fn unreached(stage: &Stage, addresses: Vec<String>) -> Result<()> {
    let place = stage.place(stage.usual()).await?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let addresses = match place {
        Place::Bare(_) => vec![listener.local_addr()?.to_string()],
        Place::Inside(_) => addresses,
    };
    let words: Vec<String> = std::iter::once("reach".to_owned()).chain(addresses).collect();
    let told = place.probe(&words).await?;
    refused(&told, &UNREACHABLE)
}

async fn outside(stage: Arc<Stage>) -> Result<()> {
    // Addresses for documentation: nobody has them.
    let addresses = ["198.51.100.1:80", "203.0.113.7:53", "[2001:db8::1]:443", "10.0.0.1:22"];
    unreached(&stage, addresses.map(str::to_owned).to_vec()).await
}

async fn metadata(stage: Arc<Stage>) -> Result<()> {
    let addresses = [
        "169.254.169.254:80",
        "[fd00:ec2::254]:80",
        "100.100.100.200:80",
        "[fe80::1]:80",
        "168.63.129.16:80",
    ];
    unreached(&stage, addresses.map(str::to_owned).to_vec()).await
}

/// What listens on the host now, at its loopback and at each of its addresses; and two listeners
/// of our own, so that there is always something to be reached. A datagram socket "connects" to
/// any address it has a route to, and loopback is always there: only streams tell.
async fn services(stage: Arc<Stage>) -> Result<()> {
    let place = stage.place(stage.usual()).await?;
    let four = TcpListener::bind("127.0.0.1:0")?;
    let six = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok();
    let own = [four.local_addr().ok(), six.as_ref().and_then(|six| six.local_addr().ok())];
    let mut addresses: Vec<String> = own.iter().flatten().map(ToString::to_string).collect();
    if matches!(place, Place::Inside(_)) {
        let ports = listening();
        for address in host_addresses() {
            addresses.extend(ports.iter().map(|port| format!("{address}:{port}")));
        }
    }
    addresses.truncate(400);
    let words: Vec<String> = std::iter::once("reach".to_owned()).chain(addresses).collect();
    let mut told = place.probe(&words).await?;
    let attempts = told.as_object_mut().context("attempts")?;
    attempts.retain(|name, _| name.starts_with("tcp "));
    refused(&told, &UNREACHABLE)
}

/// The ports on which something listens on the host.
fn listening() -> Vec<u16> {
    let mut ports: Vec<u16> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .flat_map(|path| {
            let table = fs::read_to_string(path).unwrap_or_default();
            let found: Vec<u16> = table
                .lines()
                .skip(1)
                .filter_map(|line| {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    (words.get(3) == Some(&"0A")).then_some(())?;
                    u16::from_str_radix(words.get(1)?.rsplit(':').next()?, 16).ok()
                })
                .collect();
            found
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports.truncate(60);
    ports
}

/// The loopback, and every local address the kernel has a route for.
fn host_addresses() -> Vec<String> {
    let table = fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let lines: Vec<&str> = table.lines().collect();
    let mut found: Vec<String> = lines
        .windows(2)
        .filter(|pair| pair[1].contains("/32 host LOCAL"))
        .filter_map(|pair| Some(pair[0].trim().strip_prefix("|-- ")?.to_owned()))
        .collect();
    found.push("127.0.0.1".to_owned());
    found.push("[::1]".to_owned());
    found.sort();
    found.dedup();
    found.truncate(6);
    found
}

async fn surroundings(stage: Arc<Stage>) -> Result<()> {
    let place = stage.place(stage.usual()).await?;
    let told = place.probe(&["surroundings"]).await?;
    let host = fs::read_link("/proc/self/ns/net")?.display().to_string();
    claim(told["namespace"] != host, || "it is the host's own network".to_owned())?;
    claim(told["interfaces"] == json!(["lo"]), || told.to_string())?;
    claim(told["routes"] == json!([]), || told.to_string())?;
    let mut sockets = told["sockets"].clone();
    let attempts = sockets.as_object_mut().context("sockets")?;
    // A socket that pings is no danger where there is nobody to be pinged.
    attempts.retain(|name, _| !name.starts_with("ping "));
    refused(&sockets, &["EPERM", "EACCES", "EPROTONOSUPPORT", "EAFNOSUPPORT", "ESOCKTNOSUPPORT"])
}
