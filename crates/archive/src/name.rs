//! Names of entries: what they may be, and how they are shown.

use crate::failure::{Cause, Failed, Result};

/// Bytes of a path in an archive. Deeper places exist; they are left out, and told.
pub(crate) const MAX_NAME: usize = 32 << 10;
/// Characters of a name that belong in a message.
const SHOWN: usize = 200;

/// A name from an archive as a path below the destination: parts divided by single slashes, none
/// of them `.` or `..`. Empty for the destination itself.
pub(crate) fn relative(raw: &[u8]) -> Result<Vec<u8>> {
    let refused = |why| Err(Failed::new(Cause::Refused(why)).at(raw));
    if raw.first() == Some(&b'/') {
        return refused("an absolute name");
    }
    if raw.contains(&0) {
        return refused("a name with a NUL");
    }
    let mut path = Vec::with_capacity(raw.len());
    for part in raw.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => continue,
            b".." => return refused("a name that leads upwards"),
            _ => {}
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    Ok(path)
}

/// The path of the directory, and the last part.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// Whether `path` is `directory` or lies in it.
pub(crate) fn within(directory: &[u8], path: &[u8]) -> bool {
    directory.is_empty()
        || path.strip_prefix(directory).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// A name somebody else chose, with nothing in it that a terminal would obey, and not long.
pub fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let mut shown = String::new();
    for c in text.chars().take(SHOWN) {
        let turns_text = matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if c.is_control() || turns_text {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_path_below() {
        for (raw, path) in [
            (&b"a"[..], &b"a"[..]),
            (b"./a//b/./c/", b"a/b/c"),
            (b"./", b""),
            (b"", b""),
            (b"..a/b..", b"..a/b.."),
            (b"\xff\n", b"\xff\n"),
        ] {
            assert_eq!(relative(raw).unwrap(), path);
        }
    }

    #[test]
    fn no_name_leads_out() {
        for raw in [&b"/a"[..], b"//a", b"..", b"a/../b", b"a/..", b"../a", b"a\0b"] {
            let failed = relative(raw).unwrap_err();
            assert!(matches!(failed.cause(), Cause::Refused(_)), "{raw:?}");
            assert_eq!(failed.entry(), Some(raw));
        }
    }

    #[test]
    fn within_goes_by_whole_parts() {
        assert!(within(b"", b"a") && within(b"a", b"a") && within(b"a", b"a/b"));
        assert!(!within(b"a", b"ab") && !within(b"a/b", b"a"));
    }

    #[test]
    fn a_name_is_shown_and_not_obeyed() {
        assert_eq!(shown(b"a\x1b[2J\n\xff\xe2\x80\xae"), "a\\u{1b}[2J\\n\u{fffd}\\u{202e}");
        assert_eq!(shown(&[b'x'; 500]).chars().count(), SHOWN + 1);
    }
}
