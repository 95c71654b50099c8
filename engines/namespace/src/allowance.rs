//! Ids besides its own that the host's administrator has given to an ordinary user.
//!
//! Which they are stands in `/etc/subuid` and `/etc/subgid`; the programs `newuidmap` and `newgidmap`, which
//! have the right to, map them. Two of them are enough for a sandbox: the agent's and its guests', which
//! then are as far from each other, and from those of other sandboxes, as those of root's sandboxes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use atoll_launcher::{Extent, Lent};

use crate::root::GUEST;

/// For one sandbox.
pub(crate) const EACH: u32 = 2;

/// Consecutive ids, the first of them and how many.
type Range = (u32, u32);

/// What a user was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowance {
    users: Range,
    groups: Range,
    programs: [PathBuf; 2],
}

impl Allowance {
    /// This user's, if there is one and it can be used.
    pub(crate) fn find() -> Option<Self> {
        let user = rustix::process::geteuid().as_raw();
        let name = name(user, &fs::read_to_string("/etc/passwd").unwrap_or_default());
        let given = |path| range(user, name.as_deref(), &fs::read_to_string(path).ok()?);
        let program = |name| {
            let places =
                ["/usr/bin", "/bin", "/usr/local/bin"].map(|place| Path::new(place).join(name));
            places.into_iter().find(|path| path.exists())
        };
        Some(Self {
            users: given("/etc/subuid")?,
            groups: given("/etc/subgid")?,
            programs: [program("newuidmap")?, program("newgidmap")?],
        })
    }

    /// For how many sandboxes it is enough.
    pub(crate) fn shares(&self) -> u32 {
        self.users.1.min(self.groups.1) / EACH
    }

    /// The ids of one of them. Where the host's directories are shown, whose owner is this user, the
    /// guests are `oneself`: there is no other way to show them, but the agent still is another.
    pub(crate) fn share(&self, number: u32, oneself: Option<(u32, u32)>) -> Lent {
        let extents = |first: u32, own: Option<u32>| {
            let first = first + number * EACH;
            vec![
                Extent { inside: 0, outside: first },
                Extent { inside: GUEST, outside: own.unwrap_or(first + 1) },
            ]
        };
        Lent {
            users: extents(self.users.0, oneself.map(|(user, _)| user)),
            groups: extents(self.groups.0, oneself.map(|(_, group)| group)),
            programs: self.programs.clone(),
        }
    }
}

/// The name of a user.
fn name(user: u32, passwd: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id.parse() == Ok(user)).then(|| name.to_owned())
    })
}

/// The largest range a file gives to a user, by name or number.
fn range(user: u32, name: Option<&str>, text: &str) -> Option<Range> {
    let own = |line: &str| {
        let mut fields = line.trim().split(':');
        let whose = fields.next()?;
        let range: Range = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let ours = Some(whose) == name || whose.parse() == Ok(user);
        (ours && range.1 >= EACH && range.0.checked_add(range.1).is_some()).then_some(range)
    };
    text.lines().filter_map(own).max_by_key(|(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance() -> Allowance {
        let programs = ["/usr/bin/newuidmap", "/usr/bin/newgidmap"].map(PathBuf::from);
        Allowance { users: (100_000, 65536), groups: (200_000, 1000), programs }
    }

    #[test]
    fn a_range_is_found_by_name_or_number() {
        let text = "# nobody\nother:1:65536\nme:100000:65536\n1000:500000:10\nme:7:1\n";
        assert_eq!(range(1000, Some("me"), text), Some((100_000, 65536)));
        assert_eq!(range(1000, None, text), Some((500_000, 10)));
        assert_eq!(range(1001, Some("stranger"), text), None);
        assert_eq!(range(5, Some("x"), "x:4294967295:65536\nx:a:b\nx\n"), None);
        assert_eq!(
            name(1000, "root:x:0:0::/:/bin/sh\nme:x:1000:100::/:/bin/sh"),
            Some("me".into())
        );
    }

    #[test]
    fn no_two_shares_have_an_id_in_common() {
        let all = allowance();
        assert_eq!(all.shares(), 500);
        let ids = |number| pairs(&all.share(number, None).groups);
        assert_eq!(ids(0), [(0, 200_000), (1000, 200_001)]);
        assert_eq!(ids(499), [(0, 200_998), (1000, 200_999)]);
    }

    #[test]
    fn who_is_shown_its_own_directories_is_itself() {
        let lent = allowance().share(3, Some((1000, 100)));
        assert_eq!(pairs(&lent.users), [(0, 100_006), (1000, 1000)]);
        assert_eq!(pairs(&lent.groups), [(0, 200_006), (1000, 100)]);
    }

    fn pairs(extents: &[Extent]) -> Vec<(u32, u32)> {
        extents.iter().map(|extent| (extent.inside, extent.outside)).collect()
    }
}
