//! The keys that leave a terminal without ending what runs there.

use std::str::FromStr;

/// Keys to be typed one after the other; none if there is no way to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetachKeys(Vec<u8>);

/// Looks for the keys in what is typed.
#[derive(Debug)]
pub(crate) struct Lookout {
    keys: DetachKeys,
    /// How many of them were typed just now.
    matched: usize,
}

impl Default for DetachKeys {
    /// `ctrl-p,ctrl-q`.
    fn default() -> Self {
        Self(vec![0x10, 0x11])
    }
}

impl FromStr for DetachKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if matches!(text, "" | "none") {
            return Ok(Self(Vec::new()));
        }
        text.split(',').map(key).collect::<Result<_, _>>().map(Self)
    }
}

fn key(text: &str) -> Result<u8, String> {
    let wrong = || format!("`{text}` is no key: they are like `ctrl-p`, `ctrl-]` or `x`");
    let single = |text: &str| {
        let mut letters = text.bytes();
        letters.next().filter(|letter| letter.is_ascii_graphic() && letters.next().is_none())
    };
    match text.strip_prefix("ctrl-") {
        None => single(text).ok_or_else(wrong),
        Some(letter) => match single(letter).map(|letter| letter.to_ascii_uppercase()) {
            Some(letter @ b'@'..=b'_') => Ok(letter & 0x1f),
            _ => Err(wrong()),
        },
    }
}

impl Lookout {
    pub(crate) fn new(keys: DetachKeys) -> Self {
        Self { keys, matched: 0 }
    }

    /// Passes on what is typed, except the keys and what follows them; true if they were all there.
    /// A first key is held back until the next one shows what was meant.
    pub(crate) fn pass(&mut self, typed: &[u8], on: &mut Vec<u8>) -> bool {
        let keys = &self.keys.0;
        for byte in typed {
            if keys.get(self.matched) == Some(byte) {
                self.matched += 1;
                if self.matched == keys.len() {
                    self.matched = 0;
                    return true;
                }
                continue;
            }
            // Not meant after all; but this one may begin it anew.
            on.extend_from_slice(&keys[..self.matched]);
            self.matched = usize::from(keys.first() == Some(byte));
            if self.matched == 0 {
                on.push(*byte);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_docker_writes_them() {
        let read = |text: &str| text.parse::<DetachKeys>().map(|keys| keys.0);

        assert_eq!(read("ctrl-p,ctrl-q"), Ok(vec![0x10, 0x11]));
        assert_eq!(read("ctrl-],x"), Ok(vec![0x1d, b'x']));
        assert_eq!(read("ctrl-@"), Ok(vec![0]));
        assert_eq!(read("none"), Ok(vec![]));
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(DetachKeys::default(), "ctrl-p,ctrl-q".parse().unwrap());
        for wrong in ["ctrl-", "ctrl-1", "alt-x", "ctrl-p,,q", "ü", "ctrl-p, q"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    fn typed(keys: &str, parts: &[&[u8]]) -> (Vec<u8>, bool) {
        let mut lookout = Lookout::new(keys.parse().unwrap());
        let mut on = Vec::new();
        let left = parts.iter().any(|part| lookout.pass(part, &mut on));
        (on, left)
    }

    #[test]
    fn the_keys_leave_and_anything_else_is_typed() {
        let usual = "ctrl-p,ctrl-q";
        assert_eq!(typed(usual, &[b"ab\x10\x11cd"]), (b"ab".to_vec(), true));
        assert_eq!(typed(usual, &[b"ab\x10", b"\x11"]), (b"ab".to_vec(), true));
        assert_eq!(typed(usual, &[b"\x10", b"x\x11"]), (b"\x10x\x11".to_vec(), false));
        assert_eq!(typed(usual, &[b"\x10\x10\x11"]), (b"\x10".to_vec(), true));
        assert_eq!(typed("none", &[b"\x10\x11"]), (b"\x10\x11".to_vec(), false));
        assert_eq!(typed("x", &[b"axb"]), (b"a".to_vec(), true));
    }
}
