//! An archive read as it comes, whoever wrote it.
//!
//! Where readers of tar differ (two sizes for one file, two names for one entry, something after
//! the end), what is said last and most precisely counts, and what is only strange is refused:
//! nobody should see another archive than we do.

use crate::{
    failure::{Cause, Failed, Result},
    header::{
        BLOCK, DIRECTORY, EXTENSION, FILE, GLOBAL, HARD_LINK, Incoming, LONG_LINK, LONG_NAME,
        SYMLINK, padding,
    },
    left_out::LeftOut,
    name::{MAX_NAME, relative},
    pax,
};

/// Bytes of an extended header.
const MAX_EXTENSION: u64 = 128 << 10;
/// The longest target of a link a kernel takes.
const MAX_TARGET: usize = 4095;
/// A contiguous file, which nothing distinguishes from others.
const CONTIGUOUS: u8 = b'7';

/// One thing in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Below the destination; see [`relative`].
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    /// Permission bits, and no others.
    pub(crate) mode: u32,
    /// Seconds since the epoch.
    pub(crate) modified: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink { target: Vec<u8> },
    HardLink { path: Vec<u8> },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    Entry(Entry),
    /// Of the file that was told last.
    Data(&'a [u8]),
    /// The file that was told last is whole.
    Whole,
    LeftOut(LeftOut),
}

#[derive(Debug, Default)]
pub(crate) struct Reader {
    state: State,
    /// The part of a header, or of what one is followed by, that has come.
    held: Vec<u8>,
    /// What extended headers say about the next entry.
    next: Overrides,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Header,
    Extension {
        kind: u8,
        size: usize,
    },
    Data {
        left: u64,
        padding: usize,
    },
    Padding {
        left: usize,
    },
    /// After the first block of zeros.
    Ending,
    Ended,
}

#[derive(Debug, Default)]
struct Overrides {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    modified: Option<i64>,
}

impl Reader {
    /// Whether all of the archive has come.
    pub(crate) fn ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Takes from `input` as far as the next event; none when it needs more.
    pub(crate) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>> {
        loop {
            match self.state {
                State::Data { left: 0, padding } => {
                    self.state = State::Padding { left: padding };
                    return Ok(Some(Event::Whole));
                }
                State::Padding { left: 0 } => self.state = State::Header,
                _ if input.is_empty() => return Ok(None),
                State::Data { ref mut left, .. } => {
                    let most = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                    let (data, rest) = input.split_at(most);
                    *left -= data.len() as u64;
                    *input = rest;
                    return Ok(Some(Event::Data(data)));
                }
                State::Padding { ref mut left } => {
                    let most = input.len().min(*left);
                    *left -= most;
                    *input = &input[most..];
                }
                State::Header | State::Ending => {
                    if !self.hold(input, BLOCK) {
                        return Ok(None);
                    }
                    if let Some(event) = self.header()? {
                        return Ok(Some(event));
                    }
                }
                State::Extension { kind, size } => {
                    if !self.hold(input, size + padding(size as u64)) {
                        return Ok(None);
                    }
                    self.state = State::Header;
                    let data = std::mem::take(&mut self.held);
                    if let Some(left_out) = self.extension(kind, &data[..size])? {
                        return Ok(Some(Event::LeftOut(left_out)));
                    }
                }
                State::Ended => {
                    if input.iter().any(|byte| *byte != 0) {
                        return Err(Failed::malformed("something follows the archive's end"));
                    }
                    *input = &[];
                }
            }
        }
    }

    /// Holds bytes back until there are that many.
    fn hold(&mut self, input: &mut &[u8], size: usize) -> bool {
        let most = input.len().min(size - self.held.len());
        self.held.extend_from_slice(&input[..most]);
        *input = &input[most..];
        self.held.len() == size
    }

    fn header<'a>(&mut self) -> Result<Option<Event<'a>>> {
        let block: [u8; BLOCK] = self.held.as_slice().try_into().unwrap_or([0; BLOCK]);
        self.held.clear();
        let header = Incoming::read(&block)?;
        let header = match (header, &self.state) {
            (None, State::Ending) => {
                self.state = State::Ended;
                return Ok(None);
            }
            (None, _) => {
                self.state = State::Ending;
                return Ok(None);
            }
            (Some(_), State::Ending) => {
                return Err(Failed::malformed("the archive ends in its middle"));
            }
            (Some(header), _) => header,
        };
        match header.kind {
            EXTENSION | GLOBAL | LONG_NAME | LONG_LINK => {
                if header.size > MAX_EXTENSION {
                    return Err(Failed::malformed("an extended header is too long"));
                }
                let size = usize::try_from(header.size).unwrap_or(0);
                self.state = State::Extension { kind: header.kind, size };
                Ok(None)
            }
            _ => self.entry(header).map(|entry| Some(Event::Entry(entry))),
        }
    }

    fn entry(&mut self, header: Incoming) -> Result<Entry> {
        let said = std::mem::take(&mut self.next);
        let raw = said.path.unwrap_or(header.name);
        let size = said.size.unwrap_or(header.size);
        let refused = |cause: Cause| Failed::new(cause).at(&raw);
        if raw.len() > MAX_NAME {
            return Err(refused(Cause::Refused("its path is too long")));
        }
        let path = relative(&raw)?;
        let link = said.link.unwrap_or(header.link);
        let named_as_directory = raw.last() == Some(&b'/');
        let kind = match header.kind {
            // As the first tar had it.
            FILE if named_as_directory => Kind::Directory,
            FILE | CONTIGUOUS => Kind::File,
            DIRECTORY => Kind::Directory,
            SYMLINK if link.is_empty() || link.contains(&0) || link.len() > MAX_TARGET => {
                return Err(refused(Cause::Malformed("a link without a proper target")));
            }
            SYMLINK => Kind::Symlink { target: link },
            HARD_LINK => {
                let path = relative(&link).map_err(|_| {
                    refused(Cause::Refused("a hard link to something outside the archive"))
                })?;
                Kind::HardLink { path }
            }
            b'3' | b'4' => return Err(refused(Cause::Refused("a device"))),
            b'6' => return Err(refused(Cause::Refused("a named pipe"))),
            b'S' => return Err(refused(Cause::Unsupported("a sparse file"))),
            _ => return Err(refused(Cause::Unsupported("a kind of entry this does not know"))),
        };
        if path.is_empty() && kind != Kind::Directory {
            return Err(refused(Cause::Refused("it would replace the destination itself")));
        }
        match (&kind, size) {
            (Kind::File, _) => self.state = State::Data { left: size, padding: padding(size) },
            // Some writers give a hard link the size of its file, and then no content.
            (Kind::HardLink { .. }, _) | (_, 0) => self.state = State::Header,
            _ => return Err(refused(Cause::Malformed("it has content, and should not"))),
        }
        let modified = said.modified.unwrap_or(header.modified);
        Ok(Entry { path, kind, mode: header.mode & 0o777, modified })
    }

    /// Takes in what an extended header says.
    fn extension(&mut self, kind: u8, data: &[u8]) -> Result<Option<LeftOut>> {
        let name = || data.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        match kind {
            LONG_NAME => self.next.path = Some(name()),
            LONG_LINK => self.next.link = Some(name()),
            GLOBAL => return global(data),
            _ => pax::records(data, |key, value| self.next.take(key, value))?,
        }
        Ok(None)
    }
}

impl Overrides {
    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let wrong = || Failed::malformed("an extended header makes no sense");
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => {
                let size = pax::decimal(value).filter(|size| i64::try_from(*size).is_ok());
                self.size = Some(size.ok_or_else(wrong)?);
            }
            b"mtime" => self.modified = Some(pax::seconds(value).ok_or_else(wrong)?),
            key if key.starts_with(b"GNU.sparse.") => {
                return Err(Failed::new(Cause::Unsupported("a sparse file")));
            }
            _ => {}
        }
        Ok(())
    }
}

/// What is said about all entries. Names and sizes cannot be.
fn global(data: &[u8]) -> Result<Option<LeftOut>> {
    let mut left_out = None;
    pax::records(data, |key, value| match key {
        b"path" | b"linkpath" | b"size" => {
            Err(Failed::malformed("every entry is said to have the same name or size"))
        }
        b"comment" => {
            left_out = LeftOut::read(value);
            Ok(())
        }
        _ => Ok(()),
    })?;
    Ok(left_out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::header::{Outgoing, extension};

    fn outgoing(kind: u8, name: &[u8], link: &[u8], data: &[u8]) -> Vec<u8> {
        let mut archive = Vec::new();
        let size = data.len() as u64;
        Outgoing { kind, name, link, mode: 0o6755, size, modified: 5 }.write(&mut archive);
        archive.extend_from_slice(data);
        archive.resize(archive.len() + padding(size), 0);
        archive
    }

    fn ended(mut archive: Vec<u8>) -> Vec<u8> {
        archive.resize(archive.len() + 2 * BLOCK, 0);
        archive
    }

    /// Entries with their content, read in pieces of that many bytes.
    fn read(archive: &[u8], piece: usize) -> Result<Vec<(Entry, Vec<u8>)>> {
        let mut reader = Reader::default();
        let mut found: Vec<(Entry, Vec<u8>)> = Vec::new();
        for mut piece in archive.chunks(piece) {
            while let Some(event) = reader.next(&mut piece)? {
                match event {
                    Event::Entry(entry) => found.push((entry, Vec::new())),
                    Event::Data(data) => found.last_mut().unwrap().1.extend_from_slice(data),
                    Event::Whole | Event::LeftOut(_) => {}
                }
            }
        }
        if reader.ended() { Ok(found) } else { Err(Failed::malformed("not whole")) }
    }

    fn one(kind: u8, name: &[u8], link: &[u8]) -> Result<Entry> {
        read(&ended(outgoing(kind, name, link, b"")), 700).map(|mut found| found.remove(0).0)
    }

    #[test]
    fn an_archive_may_come_in_any_pieces() {
        let long = vec![b'n'; 300];
        let archive = ended(
            [
                outgoing(DIRECTORY, b"d/", b"", b""),
                outgoing(FILE, &long, b"", &[7; 1300]),
                outgoing(SYMLINK, b"d/l", &long, b""),
                outgoing(FILE, b"d/empty", b"", b""),
            ]
            .concat(),
        );
        let whole = read(&archive, archive.len()).unwrap();
        assert_eq!(whole.len(), 4);
        assert_eq!((whole[1].0.path.len(), whole[1].1.len()), (300, 1300));
        assert_eq!(whole[1].0.mode, 0o755);

        for piece in [1, 100, 511, 512, 513] {
            assert_eq!(read(&archive, piece).unwrap(), whole, "{piece}");
        }
    }

    #[test]
    fn a_part_is_never_taken_for_the_whole() {
        let archive = ended(outgoing(FILE, b"a", b"", &[7; 1300]));

        for length in 0..archive.len() {
            assert!(read(&archive[..length], 4096).is_err(), "{length}");
        }
        assert!(read(&archive, 4096).is_ok());
    }

    #[test]
    fn what_follows_the_end_is_zeros() {
        let mut archive = ended(outgoing(FILE, b"a", b"", b"x"));
        archive.resize(10_240, 0);
        assert!(read(&archive, 4096).is_ok());

        archive[9000] = 1;
        assert!(read(&archive, 4096).is_err());
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        for name in [&b"../a"[..], b"/etc/passwd", b"a/../../b"] {
            let failed = one(FILE, name, b"").unwrap_err();
            assert!(matches!(failed.cause(), Cause::Refused(_)));
            assert_eq!(failed.entry(), Some(name));
        }
        for link in [&b"../a"[..], b"/etc/passwd"] {
            let failed = one(HARD_LINK, b"h", link).unwrap_err();
            assert_eq!(failed.to_string(), "h: a hard link to something outside the archive");
        }
        assert!(one(SYMLINK, b"s", b"/anywhere/../at all").is_ok());
    }

    #[test]
    fn only_files_directories_and_links_are_taken() {
        for kind in *b"346SVMDZ" {
            assert_eq!(one(kind, b"x", b"").unwrap_err().entry(), Some(&b"x"[..]), "{kind}");
        }
        assert_eq!(one(CONTIGUOUS, b"x", b"").unwrap().kind, Kind::File);
        assert_eq!(one(FILE, b"x/", b"").unwrap().kind, Kind::Directory);
    }

    #[test]
    fn the_more_precise_size_counts() {
        let mut records = Vec::new();
        pax::record(&mut records, "size", b"600");
        let mut archive = Vec::new();
        extension(&mut archive, EXTENSION, &records);
        let header = Outgoing { kind: FILE, name: b"a", link: b"", mode: 0, size: 0, modified: 0 };
        header.write(&mut archive);
        archive.resize(archive.len() + 1024, b'x');

        let found = read(&ended(archive), 4096).unwrap();

        assert_eq!(found.len(), 1, "content is never taken for headers");
        assert_eq!(found[0].1, [b'x'; 600]);
    }

    #[test]
    fn extended_headers_are_bounded() {
        let header = Outgoing {
            kind: LONG_NAME,
            name: b"x",
            link: b"",
            mode: 0,
            size: 1 << 40,
            modified: 0,
        };
        let mut archive = Vec::new();
        header.write(&mut archive);

        assert!(read(&archive, 512).unwrap_err().to_string().contains("too long"));
    }

    #[test]
    fn not_every_entry_can_have_one_name() {
        let mut records = Vec::new();
        pax::record(&mut records, "path", b"everything");
        let mut archive = Vec::new();
        extension(&mut archive, GLOBAL, &records);

        assert!(read(&ended(archive), 512).is_err());
    }

    proptest! {
        #[test]
        fn a_damaged_archive_is_no_danger(at in 0_usize..3000, to: u8, piece in 1_usize..900) {
            let long = vec![b'n'; 300];
            let mut archive = ended(
                [outgoing(FILE, &long, b"", &[7; 700]), outgoing(SYMLINK, b"l", b"t", b"")].concat(),
            );
            let at = at % archive.len();
            archive[at] = to;
            let _ = read(&archive, piece);
        }
    }
}
