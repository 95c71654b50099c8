//! What an agent says of a file, in the types that clients see.

use atoll_agent_protocol::message;
use atoll_engine::{Entry, Kind};
use jiff::Timestamp;

pub(crate) fn read(entry: &message::Entry) -> Entry {
    Entry {
        name: text(&entry.name),
        path: text(&entry.path),
        kind: match entry.mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File,
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFLNK => Kind::Symlink,
            _ => Kind::Other,
        },
        size: entry.size,
        mode: entry.mode & 0o7777,
        modified: Timestamp::from_nanosecond(i128::from(entry.modified_ns))
            .unwrap_or(Timestamp::UNIX_EPOCH),
        target: entry.target.as_deref().map(text),
    }
}

/// Whether something in a directory can be called that. Who joins it to a path stays below it.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_is_told() {
        let cases = [
            (0o100_644, Kind::File, 0o644),
            (0o040_755, Kind::Directory, 0o755),
            (0o120_777, Kind::Symlink, 0o777),
            (0o010_600, Kind::Other, 0o600),
            (0o104_755, Kind::File, 0o4755),
            (u32::MAX, Kind::Other, 0o7777),
        ];
        for (mode, kind, bits) in cases {
            let entry = read(&message::Entry { mode, ..message::Entry::default() });
            assert_eq!((entry.kind, entry.mode), (kind, bits), "{mode:o}");
        }
    }

    #[test]
    fn a_time_beyond_all_calendars_does_no_harm() {
        for modified_ns in [i64::MIN, -1, 0, i64::MAX] {
            read(&message::Entry { modified_ns, ..message::Entry::default() });
        }
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for bad in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert!(!is_name(bad), "{bad:?}");
        }
        for good in [&b"a"[..], b"...", b".a", b"\xff\xfe", b"a b\n"] {
            assert!(is_name(good), "{good:?}");
        }
    }
}
