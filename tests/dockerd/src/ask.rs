//! The few questions tests have for a daemon, without a client library: one request each.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use serde_json::Value;

pub(crate) fn answers(socket: &Path) -> bool {
    request(socket, "GET", "/_ping", "").is_some_and(|(status, _)| status == 200)
}

/// An answer that must be there.
pub(crate) fn get(socket: &Path, path: &str) -> Value {
    let (status, body) = request(socket, "GET", path, "").expect("the daemon answers");
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).expect("the daemon writes JSON")
}

pub(crate) fn delete(socket: &Path, path: &str) {
    request(socket, "DELETE", path, "").expect("the daemon answers");
}

pub(crate) fn post(socket: &Path, path: &str, body: &str) -> (u16, String) {
    request(socket, "POST", path, body).expect("the daemon answers")
}

pub(crate) fn request(
    socket: &Path,
    method: &str,
    path: &str,
    body: &str,
) -> Option<(u16, String)> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(90))).ok()?;
    // Of version 1.0, so that an answer is neither cut into pieces nor followed by another.
    let head =
        format!("{method} {path} HTTP/1.0\r\nHost: docker\r\nContent-Type: application/json");
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
