//! One file, line by line, whatever its size.

use std::{collections::VecDeque, os::fd::OwnedFd};

use atoll_agent_protocol::message::Match;
use regex::bytes::Regex;
use rustix::io::{Errno, read};

/// What is read at once.
const CHUNK: usize = 64 << 10;
/// Bytes of a line that are searched.
const MAX_LINE: usize = 1 << 20;
/// Bytes of a line that are told, and what comes before a match far into it.
const MAX_TEXT: usize = 1000;
const LEAD: usize = 200;

/// A file that is being searched.
#[expect(clippy::struct_excessive_bools, reason = "they have nothing to do with each other")]
pub(super) struct Lines {
    file: OwnedFd,
    path: Vec<u8>,
    context: usize,
    buffer: Vec<u8>,
    /// The number of the line the buffer begins with.
    line: u64,
    /// The rest of a line that is too long is passed over.
    skipping: bool,
    before: VecDeque<Vec<u8>>,
    /// Found, with lines after them still to come.
    open: VecDeque<Match>,
    /// It holds a zero byte.
    pub(super) binary: bool,
    /// It could not be read.
    pub(super) broken: bool,
    /// A line was not searched to its end.
    pub(super) too_long: bool,
}

/// What a look took.
pub(super) struct Looked {
    pub(super) read: usize,
    pub(super) over: bool,
}

impl Lines {
    pub(super) fn new(file: OwnedFd, path: Vec<u8>, context: usize) -> Self {
        Self {
            file,
            path,
            context,
            buffer: Vec::new(),
            line: 1,
            skipping: false,
            before: VecDeque::new(),
            open: VecDeque::new(),
            binary: false,
            broken: false,
            too_long: false,
        }
    }

    /// Reads a piece and searches the lines that are whole.
    pub(super) fn look(&mut self, expression: &Regex, found: &mut VecDeque<Match>) -> Looked {
        let from = self.buffer.len();
        self.buffer.resize(from + CHUNK, 0);
        let count = loop {
            match read(&self.file, &mut self.buffer[from..]) {
                Err(Errno::INTR) => {}
                result => break result,
            }
        };
        self.buffer.truncate(from + count.unwrap_or(0));
        self.broken = count.is_err();
        if memchr::memchr(0, &self.buffer[from..]).is_some() {
            self.binary = true;
            self.buffer.clear();
        }
        let over = self.binary || count.unwrap_or(0) == 0;
        self.search(expression, found, over);
        if over {
            found.extend(self.open.drain(..));
        }
        Looked { read: count.unwrap_or(0), over }
    }

    fn search(&mut self, expression: &Regex, found: &mut VecDeque<Match>, last: bool) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = &buffer[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if !std::mem::take(&mut self.skipping) {
                self.line(expression, &rest[..end], found);
            }
            self.line += 1;
            rest = &rest[end + 1..];
        }
        if self.skipping {
            return;
        }
        if rest.len() > MAX_LINE {
            self.line(expression, &rest[..MAX_LINE], found);
            (self.skipping, self.too_long) = (true, true);
        } else if last {
            if !rest.is_empty() {
                self.line(expression, rest, found);
            }
        } else {
            self.buffer = rest.to_vec();
        }
    }

    fn line(&mut self, expression: &Regex, line: &[u8], found: &mut VecDeque<Match>) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        for one in &mut self.open {
            if one.after.len() < self.context {
                one.after.push(cut(line, 0).0.to_vec());
            }
        }
        while self.open.front().is_some_and(|one| one.after.len() == self.context) {
            found.extend(self.open.pop_front());
        }
        if let Some(place) = expression.find(line) {
            let (text, cut) = cut(line, place.start());
            let one = Match {
                path: self.path.clone(),
                line: self.line,
                column: place.start() as u64 + 1,
                length: place.len() as u64,
                text: text.to_vec(),
                cut,
                before: self.before.iter().cloned().collect(),
                after: Vec::new(),
            };
            if self.context == 0 { found.push_back(one) } else { self.open.push_back(one) }
        }
        if self.context > 0 {
            if self.before.len() == self.context {
                self.before.pop_front();
            }
            self.before.push_back(cut_copy(line));
        }
    }
}

fn cut_copy(line: &[u8]) -> Vec<u8> {
    cut(line, 0).0.to_vec()
}

/// As much of a line as is told, with the byte at `at` in it, and whether that is not all.
fn cut(line: &[u8], at: usize) -> (&[u8], bool) {
    if line.len() <= MAX_TEXT {
        return (line, false);
    }
    let mut start = if at < MAX_TEXT - LEAD { 0 } else { at - LEAD };
    let mut end = line.len().min(start + MAX_TEXT);
    // Not within a sign.
    while start > 0 && start < line.len() && line[start] & 0xc0 == 0x80 {
        start += 1;
    }
    while end < line.len() && end > start && line[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    (&line[start..end], true)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    fn search(text: &[u8], pattern: &str, context: usize) -> (Vec<Match>, Lines) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        file.rewind().unwrap();
        let mut lines = Lines::new(file.into(), b"/f".to_vec(), context);
        let expression = Regex::new(pattern).unwrap();
        let mut found = VecDeque::new();
        while !lines.look(&expression, &mut found).over {}
        (found.into(), lines)
    }

    #[test]
    fn lines_are_counted_over_all_pieces() {
        let mut content = "filler line\n".repeat(20_000).into_bytes();
        content.extend_from_slice(b"here it is\r\nand no more: it");

        let (found, _) = search(&content, "it", 0);

        let places: Vec<_> = found.iter().map(|one| (one.line, one.column, one.length)).collect();
        assert_eq!(places, [(20_001, 6, 2), (20_002, 14, 2)]);
        assert_eq!(found[0].text, b"here it is");
    }

    #[test]
    fn context_is_told_in_order() {
        let (found, _) = search(b"a\nb\nhit 1\nc\nhit 2\nd", "hit", 2);

        let told: Vec<_> =
            found.iter().map(|one| (one.before.concat(), one.after.concat())).collect();
        assert_eq!(
            told,
            [(b"ab".to_vec(), b"chit 2".to_vec()), (b"hit 1c".to_vec(), b"d".to_vec())]
        );
    }

    #[test]
    fn a_long_line_is_searched_and_told_cut() {
        let content = ["x".repeat(500_000), "needle".to_owned(), "ä".repeat(5000)].concat();

        let (found, lines) = search(content.as_bytes(), "needle", 0);

        assert_eq!((found.len(), found[0].column, found[0].cut), (1, 500_001, true));
        assert!(found[0].text.len() <= MAX_TEXT);
        assert!(str::from_utf8(&found[0].text).unwrap().contains("needle"));
        assert!(!lines.too_long);
    }

    #[test]
    fn a_line_that_is_too_long_is_said_to_be() {
        let content = ["x".repeat(3 << 20), "\nneedle".to_owned()].concat();

        let (found, lines) = search(content.as_bytes(), "needle", 0);

        assert_eq!(found.iter().map(|one| one.line).collect::<Vec<_>>(), [2]);
        assert!(lines.too_long);
    }

    #[test]
    fn a_zero_byte_ends_the_search() {
        let content = [b"needle\n".repeat(20_000), b"\0needle".to_vec()].concat();

        let (found, lines) = search(&content, "needle", 0);

        assert!(lines.binary);
        assert!(found.len() < 20_000);
    }
}
