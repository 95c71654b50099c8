//! Paths and queries that survive whatever a file is called.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// `path?name=value&…`.
pub(crate) fn with<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut target = path.to_owned();
    for (index, (name, value)) in pairs.into_iter().enumerate() {
        target.push(if index == 0 { '?' } else { '&' });
        target.extend(utf8_percent_encode(name, PLAIN));
        target.push('=');
        target.extend(utf8_percent_encode(value, PLAIN));
    }
    target
}

/// One part of a path.
pub(crate) fn part(text: &str) -> String {
    const PART: &AsciiSet = &PLAIN.add(b'/');
    utf8_percent_encode(text, PART).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_signs_are_escaped() {
        assert_eq!(with("/f", [("path", "a b&c=d?/ä#%")]), "/f?path=a%20b%26c%3Dd%3F/%C3%A4%23%25");
        assert_eq!(part("a/../b"), "a%2F..%2Fb");
    }
}
