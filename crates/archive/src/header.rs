//! One block that begins an entry.

use crate::{
    failure::{Failed, Result},
    pax,
};

pub(crate) const BLOCK: usize = 512;
/// The largest numbers that eleven octal digits hold.
const MAX_OCTAL: u64 = 0o777_7777_7777;
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// What follows a header.
pub(crate) const FILE: u8 = b'0';
pub(crate) const HARD_LINK: u8 = b'1';
pub(crate) const SYMLINK: u8 = b'2';
pub(crate) const DIRECTORY: u8 = b'5';
pub(crate) const EXTENSION: u8 = b'x';
pub(crate) const GLOBAL: u8 = b'g';
pub(crate) const LONG_NAME: u8 = b'L';
pub(crate) const LONG_LINK: u8 = b'K';

/// An entry to write.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) kind: u8,
    pub(crate) name: &'a [u8],
    pub(crate) link: &'a [u8],
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) modified: i64,
}

impl Outgoing<'_> {
    /// Adds the header, after an extended one for what it has no room for.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        let mut records = Vec::new();
        if self.name.len() > 100 {
            pax::record(&mut records, "path", self.name);
        }
        if self.link.len() > 100 {
            pax::record(&mut records, "linkpath", self.link);
        }
        if self.size > MAX_OCTAL {
            pax::record(&mut records, "size", self.size.to_string().as_bytes());
        }
        if !u64::try_from(self.modified).is_ok_and(|seconds| seconds <= MAX_OCTAL) {
            pax::record(&mut records, "mtime", self.modified.to_string().as_bytes());
        }
        if !records.is_empty() {
            extension(to, EXTENSION, &records);
        }
        to.extend_from_slice(&self.block());
    }

    fn block(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let text = |to: &mut [u8], from: &[u8]| {
            let length = from.len().min(to.len());
            to[..length].copy_from_slice(&from[..length]);
        };
        text(&mut block[0..100], self.name);
        number(&mut block[100..108], self.mode.into());
        // Nobody's: whoever unpacks it owns it.
        number(&mut block[108..116], 0);
        number(&mut block[116..124], 0);
        number(&mut block[124..136], self.size);
        number(&mut block[136..148], u64::try_from(self.modified).unwrap_or(0).min(MAX_OCTAL));
        block[156] = self.kind;
        text(&mut block[157..257], self.link);
        block[257..265].copy_from_slice(b"ustar\x0000");
        number(&mut block[329..337], 0);
        number(&mut block[337..345], 0);
        let sum = format!("{:06o}\0 ", checksum(&block));
        block[CHECKSUM].copy_from_slice(sum.as_bytes());
        block
    }
}

/// Adds an entry that says something about the next one, or about all.
pub(crate) fn extension(to: &mut Vec<u8>, kind: u8, data: &[u8]) {
    let name = if kind == GLOBAL { &b"pax_global_header"[..] } else { b"pax_header" };
    let size = data.len() as u64;
    let header = Outgoing { kind, name, link: b"", mode: 0o644, size, modified: 0 };
    to.extend_from_slice(&header.block());
    to.extend_from_slice(data);
    to.resize(to.len() + padding(size), 0);
}

/// Bytes that fill the last block of `size`.
pub(crate) fn padding(size: u64) -> usize {
    let over = size % BLOCK as u64;
    if over == 0 { 0 } else { BLOCK - usize::try_from(over).unwrap_or(0) }
}

/// Octal with a NUL, or binary where that has no room.
fn number(to: &mut [u8], value: u64) {
    let digits = to.len() - 1;
    let octal = format!("{value:0digits$o}");
    if octal.len() == digits {
        to[..digits].copy_from_slice(octal.as_bytes());
    } else {
        to[0] = 0x80;
        let start = to.len() - 8;
        to[start..].copy_from_slice(&value.to_be_bytes());
    }
}

/// A header as it was read. Names are as they are there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    pub(crate) kind: u8,
    pub(crate) name: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) modified: i64,
}

impl Incoming {
    /// None for a block of zeros, which ends an archive.
    pub(crate) fn read(block: &[u8; BLOCK]) -> Result<Option<Self>> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if block.starts_with(b"\x1f\x8b") || block.starts_with(b"\x28\xb5\x2f\xfd") {
            return Err(Failed::malformed("it is compressed; plain tar is wanted"));
        }
        let no_header = || Failed::malformed("this is no tar archive, or a broken one");
        let sum = octal(&block[CHECKSUM]).ok_or_else(no_header)?;
        if sum != u64::from(checksum(block)) {
            return Err(no_header());
        }
        let name = until_nul(&block[0..100]);
        let prefix = until_nul(&block[345..500]);
        let posix = block[257..263] == *b"ustar\0";
        let name = match (posix, prefix) {
            (true, [_, ..]) => [prefix, b"/", name].concat(),
            _ => name.to_vec(),
        };
        let wrong = || Failed::malformed("a header makes no sense").at(&name);
        let size = unsigned(&block[124..136]).ok_or_else(wrong)?;
        let mode = unsigned(&block[100..108]).ok_or_else(wrong)?;
        let modified = signed(&block[136..148]).ok_or_else(wrong)?;
        Ok(Some(Self {
            kind: if block[156] == 0 { FILE } else { block[156] },
            link: until_nul(&block[157..257]).to_vec(),
            mode: u32::try_from(mode & 0o7777).unwrap_or(0),
            size,
            modified,
            name,
        }))
    }
}

fn checksum(block: &[u8; BLOCK]) -> u32 {
    let bytes = block.iter().enumerate();
    bytes.map(|(at, byte)| u32::from(if CHECKSUM.contains(&at) { b' ' } else { *byte })).sum()
}

fn until_nul(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    &field[..end]
}

fn unsigned(field: &[u8]) -> Option<u64> {
    u64::try_from(signed(field)?).ok()
}

fn signed(field: &[u8]) -> Option<i64> {
    match field {
        [first, ..] if first & 0x80 != 0 => binary(field),
        _ => i64::try_from(octal(field)?).ok(),
    }
}

/// Two's complement without its highest bit, most significant byte first.
fn binary(field: &[u8]) -> Option<i64> {
    let negative = field.first()? & 0x40 != 0;
    let mut value: i128 = if negative { -1 } else { 0 };
    for (at, byte) in field.iter().enumerate() {
        let byte = match (at, negative) {
            (0, true) => byte | 0x80,
            (0, false) => byte & 0x7f,
            _ => *byte,
        };
        value = (value << 8) | i128::from(byte);
    }
    i64::try_from(value).ok()
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = until_nul(field).trim_ascii();
    digits.iter().try_fold(0_u64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(
            name in "[^\0]{1,30}", size: u64, mode in 0_u32..0o7777, modified in 0..0o777_7777_7777_i64,
        ) {
            let size = size >> 1;
            let header = Outgoing { kind: FILE, name: name.as_bytes(), link: b"", mode, size, modified };
            let read = Incoming::read(&header.block()).unwrap().unwrap();
            prop_assert_eq!((read.size, read.mode, read.modified), (size, mode, modified));
            prop_assert_eq!(&read.name[..], &name.as_bytes()[..name.len().min(100)]);
        }

        #[test]
        fn no_block_is_too_strange(bytes in proptest::collection::vec(any::<u8>(), BLOCK)) {
            let _ = Incoming::read(bytes.as_slice().try_into().unwrap());
        }
    }

    #[test]
    fn numbers_are_octal_or_binary() {
        assert_eq!(signed(b"0000644\0"), Some(0o644));
        assert_eq!(signed(b"    644 "), Some(0o644));
        assert_eq!(signed(b"\0\0\0\0"), Some(0));
        assert_eq!(signed(b"0000688\0"), None);
        assert_eq!(signed(b"\x80\0\0\0\0\0\0\x02\0\0\0\x01"), Some(8_589_934_593));
        assert_eq!(signed(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe"), Some(-2));
        assert_eq!(unsigned(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe"), None);
        assert_eq!(signed(b"\x80\x01\0\0\0\0\0\0\0\0\0\0"), None);
    }

    #[test]
    fn a_changed_header_is_noticed() {
        let header =
            Outgoing { kind: FILE, name: b"a", link: b"", mode: 0o644, size: 3, modified: 0 };
        let mut block = header.block();
        block[124] ^= 1;

        assert!(Incoming::read(&block).is_err());
    }

    #[test]
    fn what_is_compressed_is_told_as_that() {
        let mut block = [1; BLOCK];
        block[..2].copy_from_slice(b"\x1f\x8b");

        assert!(Incoming::read(&block).unwrap_err().to_string().contains("compressed"));
    }

    #[test]
    fn the_usual_tar_reads_a_size_beyond_eight_gibibytes() {
        use std::{
            io::Write as _,
            process::{Command, Stdio},
        };
        let size = 9_663_676_419;
        let mut archive = Vec::new();
        let header =
            Outgoing { kind: FILE, name: b"big", link: b"", mode: 0o644, size, modified: 0 };
        header.write(&mut archive);

        let mut tar = Command::new("tar");
        tar.arg("tv").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut tar = tar.spawn().unwrap();
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let listed = tar.wait_with_output().unwrap();

        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.contains("9663676419"), "{listed}");
    }
}
