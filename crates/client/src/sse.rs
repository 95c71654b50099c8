//! Cuts a byte stream into server-sent events, holding no more than one.

use bytes::{Buf as _, Bytes, BytesMut};

/// The longest event taken; a server of ours stays far below it.
const LONGEST: usize = 4 << 20;

/// An event's kind and data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: String,
    pub(crate) data: String,
}

/// The stream is not one of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("an event is longer than any may be")]
    TooLong,
    #[error("an event is not text")]
    NotText,
}

/// What has come so far.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// Bytes of a line that is not whole.
    pending: BytesMut,
    kind: String,
    data: String,
    has_data: bool,
}

impl Parser {
    pub(crate) fn push(&mut self, bytes: &Bytes) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole event; none until more bytes come.
    pub(crate) fn next(&mut self) -> Result<Option<Message>, Malformed> {
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line = self.pending.split_to(end);
            self.pending.advance(1);
            let line = str::from_utf8(&line).map_err(|_| Malformed::NotText)?;
            if let Some(message) = self.line(line.strip_suffix('\r').unwrap_or(line))? {
                return Ok(Some(message));
            }
        }
        if self.pending.len() > LONGEST { Err(Malformed::TooLong) } else { Ok(None) }
    }

    fn line(&mut self, line: &str) -> Result<Option<Message>, Malformed> {
        if line.is_empty() {
            let (kind, data) = (std::mem::take(&mut self.kind), std::mem::take(&mut self.data));
            return Ok(std::mem::take(&mut self.has_data).then_some(Message { kind, data }));
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.kind),
            "data" => {
                if self.data.len() + value.len() > LONGEST {
                    return Err(Malformed::TooLong);
                }
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            // Comments have no name; ids are for those who come back.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pieces: &[&[u8]]) -> Result<Vec<(String, String)>, Malformed> {
        let mut parser = Parser::default();
        let mut found = Vec::new();
        for piece in pieces {
            parser.push(&Bytes::copy_from_slice(piece));
            while let Some(Message { kind, data }) = parser.next()? {
                found.push((kind, data));
            }
        }
        Ok(found)
    }

    fn pair(kind: &str, data: &str) -> (String, String) {
        (kind.to_owned(), data.to_owned())
    }

    #[test]
    fn an_event_may_come_in_any_pieces() {
        let text = "event: output\nid: 1:2\ndata: {\"ä\":1}\n\n: alive\n\ndata:x\r\ndata: y\n\n";
        let whole = vec![pair("output", "{\"ä\":1}"), pair("", "x\ny")];
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();

        assert_eq!(parse(&[text.as_bytes()]), Ok(whole.clone()));
        assert_eq!(parse(&single), Ok(whole));
    }

    #[test]
    fn an_unfinished_event_is_no_event() {
        assert_eq!(parse(&[b"data: x\n"]), Ok(vec![]));
    }

    #[test]
    fn an_endless_event_is_refused() {
        let chunk = vec![b'x'; 1 << 20];
        let line: Vec<&[u8]> = std::iter::repeat_n(chunk.as_slice(), 5).collect();
        let mut data = b"data: ".to_vec();
        data.extend_from_slice(&chunk);
        data.push(b'\n');
        let lines: Vec<&[u8]> = std::iter::repeat_n(data.as_slice(), 5).collect();

        assert_eq!(parse(&line), Err(Malformed::TooLong));
        assert_eq!(parse(&lines), Err(Malformed::TooLong));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert_eq!(parse(&[b"data: \xff\n\n"]), Err(Malformed::NotText));
    }
}
