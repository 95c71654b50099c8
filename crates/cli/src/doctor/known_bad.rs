//! Versions with known holes. What is known is in `known_bad.toml`, beside this.

use serde::{Deserialize, Serialize};

use super::version::Version;

const TABLE: &str = include_str!("known_bad.toml");

/// All that is known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownBad {
    problem: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    program: String,
    id: String,
    about: String,
    ranges: Vec<Range>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    from: Option<String>,
    fixed: String,
}

/// A hole that a version has, or may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    pub(crate) id: String,
    pub(crate) about: String,
    /// The first version of its series without it.
    pub(crate) fixed: String,
}

/// What is to be thought of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Nothing is known against it.
    Fine,
    /// What it prints as its version cannot be put in order.
    Unknown,
    /// Its numbers are those of a bad one; whether the distribution has put the fix in, they do
    /// not tell.
    LookUp,
    Bad,
}

impl KnownBad {
    /// The table of this build.
    pub(crate) fn table() -> Self {
        toml::from_str(TABLE).expect("the table is read by a test")
    }

    /// What is known of a program's version. `packaged`: a distribution put it there, whatever its
    /// version says.
    pub(crate) fn judge(
        &self,
        program: &str,
        version: &str,
        packaged: bool,
    ) -> (Verdict, Vec<Problem>) {
        let Some(version) = Version::find(version) else { return (Verdict::Unknown, Vec::new()) };
        let rows = self.problem.iter().filter(|row| row.program == program);
        let problems: Vec<_> = rows
            .filter_map(|row| {
                let range = row.ranges.iter().find(|range| range.holds(&version))?;
                Some(Problem {
                    id: row.id.clone(),
                    about: row.about.clone(),
                    fixed: range.fixed.clone(),
                })
            })
            .collect();
        let verdict = match problems.is_empty() {
            true => Verdict::Fine,
            false if packaged || version.distribution => Verdict::LookUp,
            false => Verdict::Bad,
        };
        (verdict, problems)
    }
}

impl Range {
    fn holds(&self, version: &Version) -> bool {
        let Some(fixed) = Version::parse(&self.fixed) else { return false };
        version.is_within(self.from.as_deref().and_then(Version::parse).as_ref(), &fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(program: &str, version: &str) -> Vec<String> {
        let (_, problems) = KnownBad::table().judge(program, version, false);
        problems.into_iter().map(|problem| problem.id).collect()
    }

    #[test]
    fn every_row_of_the_table_can_be_read() {
        for row in KnownBad::table().problem {
            assert!(
                ["kernel", "runc", "crun", "containerd", "docker", "bwrap"]
                    .contains(&row.program.as_str()),
                "{}",
                row.id
            );
            assert!(row.id.split(", ").all(|id| id.starts_with("CVE-")), "{}", row.id);
            assert!(!row.ranges.is_empty(), "{}", row.id);
            for range in row.ranges {
                let fixed = Version::parse(&range.fixed);
                let from = range.from.as_deref().map(|from| Version::parse(from).unwrap());
                let fixed = fixed.unwrap_or_else(|| panic!("{}: {}", row.id, range.fixed));
                assert!(from.is_none_or(|from| from.is_within(None, &fixed)), "{}", row.id);
            }
        }
    }

    #[test]
    fn known_versions_have_their_known_holes() {
        let november = "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881";
        for (program, version, expected) in [
            ("runc", "1.0-rc6", vec!["CVE-2019-5736", "CVE-2021-30465", november]),
            ("runc", "1.0.0-rc92", vec!["CVE-2021-30465", november]),
            ("runc", "1.1.11", vec!["CVE-2024-21626", november]),
            ("runc", "1.1.12", vec![november]),
            ("runc", "1.2.7", vec![november]),
            ("runc", "1.2.8", vec![]),
            ("runc", "1.2.9", vec![]),
            ("runc", "1.3.2", vec![november]),
            ("runc", "1.3.3", vec![]),
            ("runc", "1.4.0-rc.2", vec![november]),
            ("runc", "1.4.0-rc.3", vec![]),
            ("runc", "1.4.0", vec![]),
            ("crun", "1.4.3", vec!["CVE-2022-27650"]),
            ("crun", "1.14", vec![]),
            ("bwrap", "0.4.0", vec!["CVE-2020-5291"]),
            ("bwrap", "0.8.0", vec![]),
            ("docker", "19.03.0", vec!["CVE-2019-14271", "CVE-2021-41091", "CVE-2022-36109"]),
            ("docker", "28.2.2", vec![]),
            ("containerd", "1.6.38", vec![]),
            ("containerd", "1.7.26", vec!["CVE-2024-40635"]),
            ("kernel", "5.0.21", vec!["CVE-2022-0492", "CVE-2023-32233", "CVE-2024-1086"]),
            ("kernel", "5.15.91", vec!["CVE-2023-32233", "CVE-2024-1086"]),
            ("kernel", "5.15.149", vec![]),
            ("kernel", "6.1.75", vec!["CVE-2024-1086"]),
            ("kernel", "6.1.76", vec![]),
            ("kernel", "6.8.0", vec![]),
            ("kernel", "6.18.44", vec![]),
            ("runsc", "release-20200101.0", vec![]),
        ] {
            assert_eq!(ids(program, version), expected, "{program} {version}");
        }
    }

    #[test]
    fn only_what_is_certain_is_called_bad() {
        let table = KnownBad::table();
        for (version, packaged, verdict) in [
            ("1.1.5", false, Verdict::Bad),
            ("1.1.5", true, Verdict::LookUp),
            ("1.1.5+ds1-1+deb12u1", false, Verdict::LookUp),
            ("1.2.8", false, Verdict::Fine),
            ("1.3.3-0ubuntu1", true, Verdict::Fine),
            ("git", false, Verdict::Unknown),
        ] {
            assert_eq!(table.judge("runc", version, packaged).0, verdict, "{version}");
        }
    }
}
