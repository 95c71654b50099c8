//! Programs that answer whoever asks them over HTTP: well, badly, or not at all (K17).

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

/// Listens on a port of the loopback, says so, and answers everybody in this way for ever.
pub(crate) fn answer(port: u16, way: &str) -> Option<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).ok()?;
    println!("listening");
    for caller in listener.incoming().flatten() {
        let way = way.to_owned();
        thread::spawn(move || one(caller, &way));
    }
    Some(())
}

fn one(mut caller: TcpStream, way: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") && head.len() < 1 << 20 {
        match caller.read(&mut piece)? {
            0 => return Ok(()),
            count => head.extend_from_slice(&piece[..count]),
        }
    }
    match way {
        "echo" => {
            let length = head.len();
            write!(caller, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")?;
            caller.write_all(&head)
        }
        "garbage" => caller.write_all(&[0xff; 4096]),
        "gone" => Ok(()),
        "huge" => {
            caller.write_all(b"HTTP/1.1 200 OK\r\n")?;
            loop {
                caller.write_all(b"X-Filler: ")?;
                caller.write_all(&[b'x'; 4096])?;
                caller.write_all(b"\r\n")?;
            }
        }
        // Silence.
        _ => loop {
            thread::sleep(Duration::from_hours(1));
        },
    }
}
