//! What can be reached (K01-K03). Every attempt ends by itself within a second.

use std::{
    collections::BTreeMap,
    fs,
    net::{SocketAddr, TcpStream, UdpSocket},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{privilege::Attempts, word};

/// Tries each address by TCP and UDP. A UDP socket that connects has a route; nothing is sent.
pub(crate) fn reach(addresses: &[String]) -> Value {
    let mut answers = BTreeMap::new();
    for text in addresses {
        let Ok(address) = text.parse::<SocketAddr>() else { continue };
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1));
        answers.insert(format!("tcp {text}"), told(stream));
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let datagram = UdpSocket::bind(any).and_then(|socket| socket.connect(address));
        answers.insert(format!("udp {text}"), told(datagram));
    }
    json!(answers)
}

fn told<T>(result: std::io::Result<T>) -> String {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => "ETIMEDOUT".to_owned(),
        result => word::io(result),
    }
}

/// Sockets that would see or forge other people's packets, and what interfaces there are.
pub(crate) fn surroundings() -> Value {
    let mut attempts = Attempts::default();
    let families = [("4", libc::AF_INET as usize), ("6", libc::AF_INET6 as usize)];
    for (name, family) in families {
        let icmp = if name == "4" { libc::IPPROTO_ICMP } else { libc::IPPROTO_ICMPV6 };
        let (raw, datagram) = (libc::SOCK_RAW as usize, libc::SOCK_DGRAM as usize);
        attempts.call(format!("raw {name}"), libc::SYS_socket, &[family, raw, 255]);
        attempts.call(format!("ping {name}"), libc::SYS_socket, &[family, datagram, icmp as usize]);
        attempts.call(format!("sctp {name}"), libc::SYS_socket, &[family, 1, 132]);
        attempts.call(format!("raw icmp {name}"), libc::SYS_socket, &[family, raw, icmp as usize]);
    }
    let packet = [libc::AF_PACKET as usize, libc::SOCK_RAW as usize, 0x0300];
    attempts.call("packet", libc::SYS_socket, &packet);
    let interfaces: Vec<String> = fs::read_to_string("/proc/net/dev")
        .unwrap_or_default()
        .lines()
        .skip(2)
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .collect();
    let routes: Vec<String> = fs::read_to_string("/proc/net/route")
        .unwrap_or_default()
        .lines()
        .skip(1)
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect();
    let namespace = fs::read_link("/proc/self/ns/net").map(|path| path.display().to_string()).ok();
    json!({
        "sockets": attempts.told(), "interfaces": interfaces, "routes": routes,
        "namespace": namespace,
    })
}
