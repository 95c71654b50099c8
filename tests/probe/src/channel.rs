//! One bit from one sandbox to another (J01, J02, J06): `tell` leaves it, `hear` looks for it.

use std::{fs, os::linux::net::SocketAddrExt as _, os::unix::net};

use serde_json::{Value, json};

use crate::{posture, privilege::text, sys, word};

/// System V objects are known by number.
const KEY: usize = 0x0a70_1150;

const PLACES: [&str; 6] = ["/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/run", "/home/user"];

/// Leaves `token` wherever a neighbour might find it, says so, and stays until its input ends.
pub(crate) fn tell(token: &str) {
    let address = net::SocketAddr::from_abstract_name(token);
    let listener = address.and_then(|address| net::UnixListener::bind_addr(&address));
    let make = 0o1666_usize;
    let told = json!({
        "abstract socket": word::io(listener.as_ref().map_err(copy)),
        "shared memory": word::answer(sys::call(libc::SYS_shmget, [KEY, 4096, make, 0, 0, 0])),
        "semaphore": word::answer(sys::call(libc::SYS_semget, [KEY, 1, make, 0, 0, 0])),
        "message queue": word::answer(sys::call(libc::SYS_msgget, [KEY, make, 0, 0, 0, 0])),
        "posix queue": word::answer(queue(token, (libc::O_CREAT | libc::O_RDWR) as usize)),
        "files": PLACES.map(|place| word::io(fs::write(format!("{place}/{token}"), token))),
    });
    println!("{told}");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok();
    drop(listener);
}

/// Looks in every place for `token`.
pub(crate) fn hear(token: &str) -> Value {
    let address = net::SocketAddr::from_abstract_name(token);
    let stream = address.and_then(|address| net::UnixStream::connect_addr(&address));
    let files: Vec<String> = PLACES
        .iter()
        .filter(|place| posture::names(place).iter().any(|name| name == token))
        .map(|place| (*place).to_owned())
        .collect();
    json!({
        "abstract socket": word::io(stream),
        "shared memory": word::answer(sys::call(libc::SYS_shmget, [KEY, 0, 0, 0, 0, 0])),
        "semaphore": word::answer(sys::call(libc::SYS_semget, [KEY, 0, 0, 0, 0, 0])),
        "message queue": word::answer(sys::call(libc::SYS_msgget, [KEY, 0, 0, 0, 0, 0])),
        "posix queue": word::answer(queue(token, libc::O_RDWR as usize)),
        "files": files,
    })
}

fn queue(name: &str, flags: usize) -> sys::Answer {
    sys::call(libc::SYS_mq_open, [text(name), flags, 0o666, 0, 0, 0])
}

fn copy(error: &std::io::Error) -> std::io::Error {
    error
        .raw_os_error()
        .map_or_else(|| std::io::Error::other("no number"), std::io::Error::from_raw_os_error)
}
