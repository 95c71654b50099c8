//! The environment, read once, so that tests never touch the process's own.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use crate::variable;

/// The environment variables Atoll looks at.
#[derive(Debug, Clone, Default)]
pub struct Surroundings(BTreeMap<OsString, OsString>);

impl Surroundings {
    /// Those of this process.
    #[expect(clippy::disallowed_methods, reason = "this crate is where the environment is read")]
    pub fn of_process() -> Self {
        let known = variable::SETTINGS.iter().map(|setting| setting.name);
        Self(
            known
                .chain(variable::OTHERS.iter().map(|(name, _)| *name))
                .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
                .collect(),
        )
    }

    /// A variable's value; none if it is not there or empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable that holds an absolute path. The XDG rules say to ignore a relative one.
    pub fn directory(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// What a server started in the background keeps of this environment: what its settings and
    /// its directories depend on, and no secret.
    pub fn for_server(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let kept = |name: &OsStr| {
            let setting = variable::SETTINGS.iter().any(|setting| name == setting.name);
            let directory = [variable::HOME, variable::XDG_DATA_HOME, variable::XDG_CONFIG_HOME]
                .map(OsStr::new);
            (setting && name != variable::SERVER && name != variable::API_KEY_FILE)
                || directory.contains(&name)
        };
        self.0
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
            .filter(move |(name, _)| kept(name))
    }

    /// Whether whoever looks at the screen asked for no colour.
    pub fn plain(&self) -> bool {
        self.get(variable::NO_COLOR).is_some() || self.get(variable::TERM) == Some("dumb".as_ref())
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Surroundings {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_in_the_background_inherits_settings_and_no_secret() {
        let here: Surroundings = [
            ("ATOLL_MEMORY", "1g"),
            ("ATOLL_API_KEY", "s3cret"),
            ("HOME", "/h"),
            ("TERM", "xterm"),
        ]
        .into_iter()
        .collect();

        let kept: Vec<_> = here.for_server().map(|(name, _)| name).collect();

        assert_eq!(kept, ["ATOLL_MEMORY", "HOME"]);
    }
}
