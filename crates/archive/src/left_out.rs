//! What an archive holds, and what it does not hold although it was there: told in a comment at
//! its end, which every reader of tar passes over.

use std::fmt;

use crate::name::shown;

/// Names that are told.
const TOLD: usize = 20;
const BEGIN: &str = "atoll left out ";
const LOST: &str = ", with content: ";

/// What went into an archive, or came out of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Files, directories and links; the directory itself does not count.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// What is missing.
    pub left_out: LeftOut,
}

/// What is missing from an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    count: u64,
    /// How many of them have content that could be copied.
    lost: u64,
    told: Vec<String>,
}

/// Why something is not in an archive, or not as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Pipe,
    Socket,
    Device,
    NotAllowed,
    Leased,
    TooDeep,
    Sparse,
    KernelFiles,
    Shrank,
}

impl LeftOut {
    pub(crate) fn add(&mut self, path: &[u8], why: Why) {
        self.count += 1;
        self.lost += u64::from(why.loses_content());
        if self.told.len() < TOLD {
            self.told.push(format!("{} ({why})", shown(path)));
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many of them have content, so that a copy is not what it is a copy of.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The first of them, each with the reason.
    pub fn told(&self) -> &[String] {
        &self.told
    }

    pub(crate) fn comment(&self) -> Option<String> {
        let lost = if self.lost > 0 { format!("{LOST}{}", self.lost) } else { String::new() };
        let told = self.told.join("\n");
        (self.count > 0).then(|| format!("{BEGIN}{}{lost}\n{told}", self.count))
    }

    /// Reads a comment of ours; another is nobody's business. Its writer is not trusted.
    pub(crate) fn read(comment: &[u8]) -> Option<Self> {
        let text = str::from_utf8(comment).ok()?.strip_prefix(BEGIN)?;
        let mut lines = text.split('\n');
        let first = lines.next()?;
        let (count, lost) = first.split_once(LOST).unwrap_or((first, "0"));
        let told = lines.take(TOLD).map(|line| shown(line.as_bytes())).collect();
        Some(Self { count: count.parse().ok()?, lost: lost.parse().ok()?, told })
    }
}

impl Why {
    fn loses_content(self) -> bool {
        match self {
            Self::Pipe | Self::Socket | Self::Device | Self::KernelFiles => false,
            Self::NotAllowed | Self::Leased | Self::TooDeep | Self::Sparse | Self::Shrank => true,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::NotAllowed => "not readable",
            Self::Leased => "leased by a program",
            Self::TooDeep => "its path is too long",
            Self::Sparse => "mostly holes, and too large",
            Self::KernelFiles => "files of the kernel",
            Self::Shrank => "shrank while it was read; the rest is zeros",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_tells_what_was_left_out() {
        let mut left_out = LeftOut::default();
        assert_eq!(left_out.comment(), None);
        left_out.add(b"secret", Why::NotAllowed);
        for number in 0..30 {
            left_out.add(format!("d/\n{number}").as_bytes(), Why::Pipe);
        }

        let read = LeftOut::read(left_out.comment().unwrap().as_bytes()).unwrap();

        assert_eq!((read.count(), read.lost(), read.told().len()), (31, 1, TOLD));
        assert_eq!(read.told()[4], "d/\\n3 (a named pipe)");
    }

    #[test]
    fn other_comments_say_nothing() {
        assert_eq!(LeftOut::read(b"made by hand"), None);
        assert_eq!(LeftOut::read(b"atoll left out many"), None);
    }
}
