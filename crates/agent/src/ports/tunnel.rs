//! Connections to programs that listen in the sandbox.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    time::Duration,
};

use atoll_agent_protocol::{
    message::{Done, Failure, OfPort, Upload, response::Answer, upload::Part},
    mux::Stream,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::{
        TcpSocket, TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::Semaphore,
    time::timeout,
};

use crate::{
    calls::say,
    failure::{exhausted, failure_of_connection, invalid, not_found},
};

/// Connections at one time, of all hosts together.
const PLACES: usize = 128;
/// How long a program that listens may take to let somebody in.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the kernel keeps of a connection, each way; it is this agent's memory.
const BUFFER: u32 = 128 << 10;
/// What is read at once.
const CHUNK: usize = 64 << 10;

/// One place for each connection there may be.
pub(crate) fn places() -> Semaphore {
    Semaphore::new(PLACES)
}

/// Connects, and carries bytes until both directions have ended.
pub(crate) async fn connect(
    places: &Semaphore,
    ask: OfPort,
    stream: &Stream,
) -> Result<(), Failure> {
    let port = u16::try_from(ask.port).ok().filter(|port| *port > 0);
    let port = port.ok_or_else(|| invalid("a port is a number from 1 to 65535"))?;
    let too_many = |_| exhausted("too many connections to ports of the sandbox");
    let _place = places.try_acquire().map_err(too_many)?;
    let mut socket = open(port).await?;
    if !say(stream, Answer::Done(Done { truncated: false })).await {
        return Ok(());
    }
    let (reader, writer) = socket.split();
    let mut up = pin!(receive(stream, writer));
    let mut down = pin!(send(reader, stream));
    tokio::select! {
        () = &mut up => down.await,
        result = &mut down => {
            result?;
            stream.finish();
            up.await;
            Ok(())
        }
    }
}

async fn open(port: u16) -> Result<TcpStream, Failure> {
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let opening = timeout(PATIENCE, open_at(SocketAddr::new(address, port)));
        match opening.await {
            Ok(Ok(Some(socket))) => return Ok(socket),
            Ok(Err(cause)) if is_shortage(&cause) => {
                return Err(exhausted(format!("no connection to port {port} can be made now")));
            }
            Ok(Ok(None) | Err(_)) => {}
            Err(_) => {
                let why = format!("what listens on port {port} does not take the connection");
                return Err(exhausted(why));
            }
        }
    }
    Err(not_found(format!("nothing listens on port {port} of the sandbox")))
}

/// A connection; none if it would be to itself.
async fn open_at(address: SocketAddr) -> io::Result<Option<TcpStream>> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_send_buffer_size(BUFFER)?;
    socket.set_recv_buffer_size(BUFFER)?;
    let socket = socket.connect(address).await?;
    socket.set_nodelay(true)?;
    // Where nobody listens the kernel may happen to connect a socket with itself.
    let own = socket.local_addr()? == socket.peer_addr()?;
    Ok((!own).then_some(socket))
}

/// Whether it is no fault of the port.
fn is_shortage(cause: &io::Error) -> bool {
    let shortages = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS, libc::EAGAIN];
    cause.raw_os_error().is_some_and(|code| shortages.contains(&code))
}

/// Passes on what the host sends, until it has finished or the program takes no more: then its
/// own direction ends too, and tells.
async fn receive(stream: &Stream, mut writer: WriteHalf<'_>) {
    while let Ok(message) = stream.recv::<Upload>().await {
        match message {
            Some(Upload { part: Some(Part::Chunk(data)) }) => {
                if writer.write_all(&data).await.is_err() {
                    return;
                }
            }
            _ => break,
        }
    }
    let _ = writer.shutdown().await;
}

/// Passes on what the program sends, until it has finished.
async fn send(reader: ReadHalf<'_>, stream: &Stream) -> Result<(), Failure> {
    loop {
        reader.readable().await.map_err(|cause| failure_of_connection(&cause))?;
        // Only now, so that a connection nobody uses takes no memory.
        let mut buffer = vec![0; CHUNK];
        let count = match reader.try_read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => continue,
            Err(cause) => return Err(failure_of_connection(&cause)),
        };
        buffer.truncate(count);
        if !say(stream, Answer::Chunk(buffer.into())).await {
            return Ok(());
        }
    }
}
