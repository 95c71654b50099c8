//! Versions as programs write them, put in order.

use std::cmp::Ordering;

/// A version: its numbers, whether it comes before its release, and whether somebody else than its
/// authors had a hand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    numbers: Vec<u64>,
    /// `-rc93`, `-rc.3`, `-beta.0`: the word and its number.
    before: Option<(String, u64)>,
    /// `+ds1`, `-1+deb12u1`, `-91-generic`, `.el9`: fixes may be in it that its numbers do not tell.
    pub(crate) distribution: bool,
}

impl Version {
    /// The first version in a text, such as what `--version` prints.
    pub(crate) fn find(text: &str) -> Option<Self> {
        text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')'))
            .find_map(Self::parse)
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        // gVisor's are dates: release-20240101.0.
        let word = word.strip_prefix("release-").unwrap_or(word);
        let word = word.strip_prefix('v').unwrap_or(word);
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (numbers, mut rest) = word.split_at(end);
        let numbers: Vec<u64> = numbers
            .trim_end_matches('.')
            .split('.')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        if numbers.len() < 2 {
            return None;
        }
        let mut before = None;
        for name in ["rc", "beta", "alpha"] {
            let marked = rest.strip_prefix(['-', '~']).and_then(|rest| rest.strip_prefix(name));
            if let Some(number) = marked {
                let number = number.strip_prefix(['.', '-']).unwrap_or(number);
                let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
                before = Some((name.to_owned(), number[..digits].parse().unwrap_or(0)));
                rest = &number[digits..];
            }
        }
        Some(Self { numbers, before, distribution: !rest.is_empty() })
    }

    /// Whether this is at least `from` and before `fixed`.
    pub(crate) fn is_within(&self, from: Option<&Self>, fixed: &Self) -> bool {
        from.is_none_or(|from| self.order(from) != Ordering::Less)
            && self.order(fixed) == Ordering::Less
    }

    fn order(&self, other: &Self) -> Ordering {
        let longest = self.numbers.len().max(other.numbers.len());
        let number = |version: &Self, place| version.numbers.get(place).copied().unwrap_or(0);
        let numbers = (0..longest).map(|place| number(self, place).cmp(&number(other, place)));
        numbers.fold(Ordering::Equal, Ordering::then).then_with(|| {
            match (&self.before, &other.before) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(one), Some(other)) => one.cmp(other),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap_or_else(|| panic!("{text} is a version"))
    }

    #[test]
    fn versions_are_in_order() {
        let ordered = [
            "1.0-rc6",
            "1.0.0-rc7",
            "1.0.0-rc93",
            "1.0.0-rc.95",
            "1.0.0",
            "1.0.1",
            "1.1.5",
            "1.1.12",
            "1.4.0-alpha.9",
            "1.4.0-beta.0",
            "1.4.0-rc.2",
            "1.4.0",
            "20.10.9",
            "20.10.18",
        ];
        for pair in ordered.windows(2) {
            assert_eq!(version(pair[0]).order(&version(pair[1])), Ordering::Less, "{pair:?}");
            assert_eq!(version(pair[1]).order(&version(pair[0])), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(version("5.16").order(&version("5.16.0")), Ordering::Equal);
    }

    #[test]
    fn what_a_distribution_made_is_known_by_its_suffix() {
        for (text, distribution) in [
            ("1.1.12", false),
            ("v1.1.12", false),
            ("1.4.0-rc.3", false),
            ("1.1.5+ds1", true),
            ("1.1.5+ds1-1+deb12u1", true),
            ("1.1.12-0ubuntu3.1", true),
            ("1.6.20~ds1", true),
            ("5.15.0-91-generic", true),
            ("6.1.0-18-amd64", true),
            ("5.14.0-362.8.1.el9_3.x86_64", true),
            ("6.8.0-rc1", false),
            ("6.8.0-rc1-custom", true),
            ("6.6.15", false),
            ("release-20240101.0", false),
        ] {
            assert_eq!(version(text).distribution, distribution, "{text}");
        }
    }

    #[test]
    fn the_version_is_found_in_what_programs_print() {
        for (text, found) in [
            ("runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2-dev", "1.1.5+ds1"),
            ("crun version 1.8.1\ncommit: f8a0", "1.8.1"),
            ("runsc version release-20231009.0\nspec: 1.1.0", "20231009.0"),
            ("Docker version 28.2.2, build e6534b4", "28.2.2"),
            ("Docker version 20.10.5+dfsg1, build 55c4c88", "20.10.5+dfsg1"),
            ("bubblewrap 0.8.0", "0.8.0"),
            ("containerd github.com/containerd/containerd v1.7.27 05044ec0a9", "1.7.27"),
            ("podman version 4.3.1", "4.3.1"),
        ] {
            assert_eq!(Version::find(text), Version::parse(found), "{text}");
        }
        for text in ["", "runc", "version unknown", "build 7", "no such file or directory"] {
            assert_eq!(Version::find(text), None, "{text}");
        }
    }
}
