//! Which ports somebody listens on, as the kernel tells.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    net::{Ipv4Addr, Ipv6Addr},
};

use atoll_agent_protocol::message::{Failure, Ports};

use crate::{failure::internal, files::Files};

/// Ports in one answer.
const MOST: usize = 4096;
/// What is read of a table: guests decide how long it is.
const MAX_TABLE: u64 = 16 << 20;
/// `TCP_LISTEN`, as the tables write it.
const LISTEN: &str = "0A";

/// Ports that are reached through 127.0.0.1 or `::1`.
pub(crate) async fn listening(files: &Files) -> Result<Ports, Failure> {
    let found = files.pool().run(find).await?;
    let found = found.map_err(|_| internal("the table of connections cannot be read"))?;
    Ok(Ports { ports: found.into_iter().take(MOST).map(u32::from).collect() })
}

fn find() -> io::Result<BTreeSet<u16>> {
    let mut found = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let file = match File::open(table) {
            // A kernel without that family.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        for line in BufReader::new(file.take(MAX_TABLE)).lines() {
            found.extend(port(&line?));
        }
    }
    Ok(found)
}

/// The port of a line of the table, if it is a listener that loopback reaches.
fn port(line: &str) -> Option<u16> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (address, port) = words.next()?.split_once(':')?;
    let state = words.nth(1)?;
    if state != LISTEN || !is_reached(address)? {
        return None;
    }
    u16::from_str_radix(port, 16).ok()
}

/// Addresses are written as numbers of 32 bits, each as this machine has it in memory.
fn is_reached(address: &str) -> Option<bool> {
    let mut bytes = Vec::new();
    for word in address.as_bytes().chunks(8) {
        let word = u32::from_str_radix(str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    if let Ok(bytes) = <[u8; 4]>::try_from(&bytes[..]) {
        let address = Ipv4Addr::from(bytes);
        return Some(address.is_unspecified() || address == Ipv4Addr::LOCALHOST);
    }
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?);
    Some(match address.to_ipv4_mapped() {
        Some(mapped) => mapped.is_unspecified() || mapped == Ipv4Addr::LOCALHOST,
        None => address.is_unspecified() || address.is_loopback(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn listeners_that_loopback_reaches_are_found() {
        let rest = "00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 1 1 0 100 0";
        let cases = [
            ("0100007F:1F90", Some(8080)),
            ("00000000:0016", Some(22)),
            ("0200007F:1F90", None),
            ("0101A8C0:1F90", None),
            ("00000000000000000000000000000000:1F90", Some(8080)),
            ("00000000000000000000000001000000:0050", Some(80)),
            ("0000000000000000FFFF00000100007F:0050", Some(80)),
            ("0000000000000000FFFF00000101A8C0:0050", None),
            ("000080FE000000000000000001000000:0050", None),
            ("0100007F", None),
            ("x:1F90", None),
            ("", None),
        ];
        for (local, expected) in cases {
            assert_eq!(port(&format!("   0: {local} {rest}")), expected, "{local}");
        }
    }

    #[test]
    fn connections_and_headings_are_no_listeners() {
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when";
        assert_eq!(port(heading), None);
        let open = "   1: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000";
        assert_eq!(port(open), None);
    }
}
