//! Checks and controls that do not apply to an engine: committed, with their reasons, and told at
//! the end of every run.

use std::collections::BTreeMap;

/// The names of tests that are not run, and why.
#[derive(Debug, Clone, Default)]
pub struct Exceptions(BTreeMap<String, String>);

impl Exceptions {
    /// Reads lines of `NAME # REASON`; a line that begins with `#` is for people.
    ///
    /// # Panics
    ///
    /// If a line gives no reason, or a test is named twice.
    pub fn read(text: &str) -> Self {
        let mut found = BTreeMap::new();
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, reason) = line.split_once(" # ").expect("every exception has its reason");
            let before = found.insert(name.trim().to_owned(), reason.trim().to_owned());
            assert!(before.is_none(), "{name} is excepted twice");
        }
        Self(found)
    }

    /// Why this test is not run; none if it is. A check that does not apply takes its control along.
    pub fn reason(&self, name: &str) -> Option<&str> {
        let check = name.trim_end_matches(" (control)");
        self.0.get(name).or_else(|| self.0.get(check)).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, reason)| (name.as_str(), reason.as_str()))
    }

    /// Names that are no test's: a list that has outlived what it speaks of.
    pub fn strangers(&self, names: &[String]) -> Vec<String> {
        self.0.keys().filter(|name| !names.contains(name)).cloned().collect()
    }
}
