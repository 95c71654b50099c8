//! Where Atoll's directories are when nobody says.

use std::path::PathBuf;

use crate::{Surroundings, variable};

/// The data directory of this user; the system's for one without a home.
pub(crate) fn data(here: &Surroundings) -> PathBuf {
    here.directory(variable::XDG_DATA_HOME)
        .or_else(|| Some(here.directory(variable::HOME)?.join(".local/share")))
        .unwrap_or_else(|| PathBuf::from("/var/lib"))
        .join("atoll")
}

/// The settings file of this user, there or not.
pub(crate) fn file(here: &Surroundings) -> PathBuf {
    here.directory(variable::XDG_CONFIG_HOME)
        .or_else(|| Some(here.directory(variable::HOME)?.join(".config")))
        .unwrap_or_else(|| PathBuf::from("/etc"))
        .join("atoll/config.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_lives_where_xdg_says_then_at_home_then_in_the_system() {
        let places = [
            [("XDG_DATA_HOME", "/x"), ("HOME", "/h")].into_iter().collect::<Surroundings>(),
            [("HOME", "/h")].into_iter().collect(),
            [("XDG_DATA_HOME", "relative")].into_iter().collect(),
        ]
        .map(|here| data(&here));

        assert_eq!(
            places,
            ["/x/atoll", "/h/.local/share/atoll", "/var/lib/atoll"].map(PathBuf::from)
        );
    }
}
