//! Where what a process wrote is shown: as it is, or a line of JSON for each piece.

use std::{collections::VecDeque, io};

use atoll_types::process::{ProcessEnd, ProcessEvent, Stream};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::Serialize;

use crate::{
    failure::{Failure, Result},
    output::Output,
    printer::Printer,
};

/// Shows output, or holds the last lines of it back until [`show`](Self::show).
#[derive(Debug)]
pub(crate) struct Scroll {
    printer: Printer,
    output: Output,
    held: Option<[Tail; 2]>,
}

/// The last lines of one stream.
#[derive(Debug)]
struct Tail {
    most: usize,
    /// Where the first byte that is held is in the stream.
    offset: u64,
    lines: VecDeque<Vec<u8>>,
}

/// Bytes that are no longer there.
#[derive(Serialize)]
#[serde(tag = "type", rename = "gap")]
struct Gap {
    stream: Stream,
    from: u64,
    to: u64,
}

impl Scroll {
    /// With `tail`, only so many lines of each stream of what comes before [`show`](Self::show).
    pub(crate) fn new(printer: Printer, tail: Option<usize>) -> Self {
        let held = tail.map(|most| [Tail::new(most), Tail::new(most)]);
        Self { printer, output: Output::passed(), held }
    }

    pub(crate) async fn output(
        &mut self,
        stream: Stream,
        offset: u64,
        data: Bytes,
    ) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        match &mut self.held {
            Some(held) => {
                held[index(stream)].push(offset, &data);
                Ok(())
            }
            None => self.write(stream, offset, &data).await,
        }
    }

    /// Says that bytes are missing, where they are.
    pub(crate) async fn gap(&mut self, stream: Stream, from: u64, to: u64) -> io::Result<()> {
        if self.held.is_some() {
            // What is left of a line that began before is no line.
            return Ok(());
        }
        if self.printer.json_asked_for() {
            return self.line(&Gap { stream, from, to }).await;
        }
        self.printer.note(format_args!("{} bytes are no longer kept", to - from));
        Ok(())
    }

    /// Shows what was held back; from now on nothing is.
    pub(crate) async fn show(&mut self) -> Result {
        let Some(held) = self.held.take() else { return Ok(()) };
        for (stream, tail) in [Stream::Stdout, Stream::Stderr].into_iter().zip(held) {
            let offset = tail.offset;
            let data: Vec<u8> = tail.lines.into_iter().flatten().collect();
            if !data.is_empty() {
                self.write(stream, offset, &data).await.or_else(|error| unread(&error))?;
            }
        }
        Ok(())
    }

    /// Says how the process ended, as far as its exit code does not.
    pub(crate) async fn finish(&mut self, end: &ProcessEnd) -> Result {
        self.show().await?;
        if self.printer.json_asked_for() {
            let end = ProcessEvent::End { end: end.clone() };
            return self.line(&end).await.or_else(|error| unread(&error));
        }
        self.output.finish(self.printer, end)
    }

    async fn write(&mut self, stream: Stream, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.printer.json_asked_for() {
            let data = STANDARD.encode(data);
            return self.line(&ProcessEvent::Output { stream, offset, data }).await;
        }
        self.output.write(stream, data).await
    }

    async fn line(&mut self, event: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.output.write(Stream::Stdout, &line).await
    }
}

/// A reader that has gone away is no failure.
fn unread(error: &io::Error) -> Result {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::new(format!("cannot write: {error}"))),
    }
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

impl Tail {
    fn new(most: usize) -> Self {
        Self { most, offset: 0, lines: VecDeque::new() }
    }

    /// Adds bytes, and drops the first lines if there are too many.
    fn push(&mut self, offset: u64, data: &[u8]) {
        if self.lines.is_empty() {
            self.offset = offset;
        }
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            match self.lines.back_mut() {
                Some(last) if last.last() != Some(&b'\n') => last.extend_from_slice(piece),
                _ => self.lines.push_back(piece.to_vec()),
            }
            while self.lines.len() > self.most {
                let dropped = self.lines.pop_front().unwrap_or_default();
                self.offset += dropped.len() as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(most: usize, pieces: &[&str]) -> (u64, String) {
        let mut tail = Tail::new(most);
        let mut offset = 0;
        for piece in pieces {
            tail.push(offset, piece.as_bytes());
            offset += piece.len() as u64;
        }
        let text = tail.lines.into_iter().flatten().collect();
        (tail.offset, String::from_utf8(text).unwrap())
    }

    #[test]
    fn the_last_lines_are_held() {
        assert_eq!(tail(2, &["a\nb\nc\n"]), (2, "b\nc\n".into()));
        assert_eq!(tail(2, &["a\nb", "b\nc", "c"]), (2, "bb\ncc".into()));
        assert_eq!(tail(1, &["a\n", "\n"]), (2, "\n".into()));
        assert_eq!(tail(9, &["a\n", "b"]), (0, "a\nb".into()));
        assert_eq!(tail(0, &["a\nb"]).1, "");
    }
}
