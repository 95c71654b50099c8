//! Ports taken so that somebody else's callers come here (K12).

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use crate::{
    sys::{self, Answer},
    word,
};

/// Listens at every address of the port, and where programs of consequence would listen, sharing
/// with whoever is there already; answers each caller with `token`. Stays until its input ends.
pub(crate) fn lure(port: u16, token: &str) {
    let mut answers = BTreeMap::new();
    let mut children = Vec::new();
    for port in [port, 22, 80, 443, 2375, 2376, 8000] {
        for family in [libc::AF_INET, libc::AF_INET6] {
            let name = format!("{} {port}", if family == libc::AF_INET { "4" } else { "6" });
            let listener = listen(family as usize, port);
            answers.insert(name, json!(word::answer(listener)));
            if let Ok(listener) = listener {
                children.extend(sys::spawn(|| answer(listener as usize, token.as_bytes())));
            }
        }
    }
    println!("{}", json!(answers));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok();
    for child in children {
        sys::kill(child, libc::SIGKILL).ok();
        sys::wait(child);
    }
}

/// A listening socket at every address of one family.
fn listen(family: usize, port: u16) -> Answer {
    let made = sys::call(libc::SYS_socket, [family, libc::SOCK_STREAM as usize, 0, 0, 0, 0])?;
    let socket = made as usize;
    let one = 1_i32;
    let yes = &raw const one as usize;
    for option in [libc::SO_REUSEADDR, libc::SO_REUSEPORT] {
        let level = libc::SOL_SOCKET as usize;
        sys::call(libc::SYS_setsockopt, [socket, level, option as usize, yes, 4, 0])?;
    }
    let (level, only) = (libc::IPPROTO_IPV6 as usize, libc::IPV6_V6ONLY as usize);
    if family == libc::AF_INET6 as usize {
        sys::call(libc::SYS_setsockopt, [socket, level, only, yes, 4, 0])?;
    }
    // The family in the machine's order, the port in the network's, and the address of nobody.
    let mut address = [0_u8; 28];
    address[..2].copy_from_slice(&u16::try_from(family).unwrap_or(0).to_ne_bytes());
    address[2..4].copy_from_slice(&port.to_be_bytes());
    let length = if family == libc::AF_INET as usize { 16 } else { 28 };
    sys::call(libc::SYS_bind, [socket, address.as_ptr() as usize, length, 0, 0, 0])?;
    sys::call(libc::SYS_listen, [socket, 16, 0, 0, 0, 0])?;
    Ok(made)
}

fn answer(listener: usize, token: &[u8]) -> usize {
    while let Ok(caller) = sys::call(libc::SYS_accept4, [listener, 0, 0, 0, 0, 0]) {
        let bytes = [caller as usize, token.as_ptr() as usize, token.len(), 0, 0, 0];
        sys::call(libc::SYS_write, bytes).ok();
        sys::call(libc::SYS_close, [caller as usize, 0, 0, 0, 0, 0]).ok();
    }
    1
}

/// Every socket that others could call, as the kernel's tables tell.
pub(crate) fn listeners() -> Value {
    let mut found = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6", "unix"] {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let listens = match table {
                // The flag of a socket that listens.
                "unix" => words.get(3) == Some(&"00010000"),
                "tcp" | "tcp6" => words.get(3) == Some(&"0A"),
                _ => true,
            };
            if listens {
                let name = if table == "unix" { words.get(7) } else { words.get(1) };
                found.push(format!("{table} {}", name.copied().unwrap_or("without a name")));
            }
        }
    }
    json!(found)
}
