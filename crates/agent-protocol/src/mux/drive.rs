//! Carries frames between a byte stream and the [`State`](super::state::State).

use std::{io, sync::Arc};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    task::yield_now,
};

use super::{Connection, Error};
use crate::frame::{HEADER, Header};

/// Bytes written at once, and how many frames are handled before others have their turn.
const BATCH: usize = 64 << 10;
const BURST: usize = 64;

/// Runs the connection to its end.
pub(super) async fn run<T>(io: T, connection: Arc<Connection>)
where
    T: AsyncRead + AsyncWrite,
{
    let (input, output) = tokio::io::split(io);
    let error = tokio::select! {
        error = read(input, &connection) => error,
        error = write(output, &connection) => error,
        () = connection.abandoned.notified() => Error::Closed,
    };
    connection.end(error);
}

async fn read(input: impl AsyncRead + Unpin, connection: &Connection) -> Error {
    let mut input = BufReader::new(input);
    let mut handled = 0;
    loop {
        if let Err(error) = read_frame(&mut input, connection).await {
            return error;
        }
        handled += 1;
        if handled % BURST == 0 {
            yield_now().await;
        }
    }
}

async fn read_frame(
    input: &mut (impl AsyncRead + Unpin),
    connection: &Connection,
) -> Result<(), Error> {
    let mut head = [0; HEADER];
    let first = input.read(&mut head).await.map_err(broken)?;
    if first == 0 {
        return Err(Error::Closed);
    }
    input.read_exact(&mut head[first..]).await.map_err(broken)?;
    let header = Header::decode(head)?;
    connection.locked(|state| state.expect(&header))?;

    let mut payload = vec![0; header.length()];
    input.read_exact(&mut payload).await.map_err(broken)?;
    let frame = header.frame(Bytes::from(payload))?;
    connection.locked(|state| state.receive(header.stream, frame))?;
    Ok(())
}

async fn write(mut output: impl AsyncWrite + Unpin, connection: &Connection) -> Error {
    loop {
        let batch = connection.locked(|state| {
            let mut batch = Vec::new();
            while batch.len() < BATCH
                && let Some((stream, frame)) = state.next()
            {
                frame.encode(stream, &mut batch);
            }
            batch
        });
        if batch.is_empty() {
            connection.work.notified().await;
            continue;
        }
        let written = async {
            output.write_all(&batch).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            return broken(error);
        }
        yield_now().await;
    }
}

fn broken(error: io::Error) -> Error {
    Error::Io(Arc::new(error))
}
