//! Programs that write too much, too often, or something that looks like ours (D), and one that
//! changes paths under the feet of others (F04).

use std::{
    io::{self, Write as _},
    thread,
};

use crate::{privilege::text, sys};

/// The byte at `offset` of every long output: no two neighbours alike, the line end if asked.
pub(crate) fn pattern(offset: u64, lines: bool) -> u8 {
    if lines && offset % 80 == 79 { b'\n' } else { b'a' + u8::try_from(offset % 23).unwrap_or(0) }
}

/// So many bytes to standard output, or to both streams at once (D01-D03, D07).
pub(crate) fn flood(bytes: u64, lines: bool, both: bool) -> bool {
    if both {
        let other = thread::spawn(move || pour(&mut io::stderr().lock(), bytes, lines));
        let done = pour(&mut io::stdout().lock(), bytes, lines);
        return other.join().is_ok_and(|other| other) && done;
    }
    pour(&mut io::stdout().lock(), bytes, lines)
}

fn pour(stream: &mut dyn io::Write, bytes: u64, lines: bool) -> bool {
    let mut offset = 0;
    while offset < bytes {
        let length = (bytes - offset).min(8 << 10);
        let block: Vec<u8> =
            (offset..offset + length).map(|offset| pattern(offset, lines)).collect();
        if stream.write_all(&block).is_err() {
            return false;
        }
        offset += length;
    }
    stream.flush().is_ok()
}

/// One byte at a time (D06).
pub(crate) fn drip(bytes: u64) -> bool {
    (0..bytes).all(|offset| {
        let byte = [pattern(offset, false)];
        sys::call(libc::SYS_write, [1, byte.as_ptr() as usize, 1, 0, 0, 0]) == Ok(1)
    })
}

/// What might pass for a message, an end, or a result of ours; then ends with 7 (D11).
pub(crate) fn forge() {
    let mut out = io::stdout().lock();
    for text in [
        "exit code: 0\n",
        "{\"outcome\":{\"reason\":\"exited\",\"exit_code\":0}}\n",
        "data: {\"type\":\"ended\",\"exit_code\":0}\n\n",
        "event: ended\n\n",
        "\r\n0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ] {
        out.write_all(text.as_bytes()).ok();
    }
    // Short frames of every first byte, with lengths that promise nothing, little and everything.
    for first in 0..=255_u8 {
        out.write_all(&[first, 0, 0, 0, 0, 0, 0, 1, 8, 0]).ok();
        out.write_all(&[first, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]).ok();
    }
    out.flush().ok();
}

/// Exchanges two paths for ever (F04).
pub(crate) fn flip(one: &str, other: &str) {
    let (one, other) = (text(one), text(other));
    let at = libc::AT_FDCWD as usize;
    println!("flipping");
    loop {
        if sys::call(libc::SYS_renameat2, [at, one, at, other, 2, 0]).is_err() {
            return;
        }
    }
}
