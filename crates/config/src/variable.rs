//! Every environment variable Atoll reads.
//!
//! A variable that begins with `ATOLL_` and is not here is ignored, not refused: Kubernetes makes
//! such names (`ATOLL_PORT`, `ATOLL_SERVICE_HOST`) for a service called `atoll`.

/// A variable that stands for a key of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    /// The key, its tables before it: `server.listen`.
    pub key: &'static str,
}

const fn setting(name: &'static str, key: &'static str) -> Setting {
    Setting { name, key }
}

/// The server to talk to.
pub const SERVER: &str = "ATOLL_SERVER";
/// The file that holds the key for it.
pub const API_KEY_FILE: &str = "ATOLL_API_KEY_FILE";
/// The key itself. Not a key of the settings file: secrets do not belong there.
pub const API_KEY: &str = "ATOLL_API_KEY";
/// The settings file.
pub const CONFIG: &str = "ATOLL_CONFIG";
/// Home directory, where data and settings live if no XDG variable says otherwise.
pub const HOME: &str = "HOME";
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Set to anything: no colour (<https://no-color.org>).
pub const NO_COLOR: &str = "NO_COLOR";
/// `dumb`: no colour, no progress bar.
pub const TERM: &str = "TERM";
/// Tests: an engine that cannot run here is a failure, not something to leave out.
pub const REQUIRE_ENGINES: &str = "ATOLL_REQUIRE_ENGINES";

/// One variable for each key. The documents are in `default.toml`, beside the keys.
pub const SETTINGS: &[Setting] = &[
    setting("ATOLL_DATA_DIR", "data_dir"),
    setting("ATOLL_ENVIRONMENTS_DIR", "environments_dir"),
    setting("ATOLL_LOG", "log"),
    setting("ATOLL_LISTEN", "server.listen"),
    setting("ATOLL_INSECURE", "server.insecure"),
    setting("ATOLL_TLS_CERT", "server.tls_cert"),
    setting("ATOLL_TLS_KEY", "server.tls_key"),
    setting("ATOLL_HOSTS", "server.hosts"),
    setting("ATOLL_IDLE_EXIT", "server.idle_exit"),
    setting("ATOLL_PORT_TIMEOUT", "server.port_timeout"),
    setting("ATOLL_ENVIRONMENT", "sessions.environment"),
    setting("ATOLL_ENGINE", "sessions.engine"),
    setting("ATOLL_SESSION_TIMEOUT", "sessions.timeout"),
    setting("ATOLL_MAX_TIMEOUT", "sessions.max_timeout"),
    setting("ATOLL_SESSION_IDLE", "sessions.idle"),
    setting("ATOLL_EXECUTION_TIMEOUT", "sessions.execution_timeout"),
    setting("ATOLL_MAX_EXECUTION_TIMEOUT", "sessions.max_execution_timeout"),
    setting("ATOLL_KEEP_RECORDS", "sessions.keep_records"),
    setting("ATOLL_MAX_SESSIONS", "sessions.max_sessions"),
    setting("ATOLL_MEMORY", "limits.memory"),
    setting("ATOLL_CPUS", "limits.cpus"),
    setting("ATOLL_PIDS", "limits.pids"),
    setting("ATOLL_OPEN_FILES", "limits.open_files"),
    setting("ATOLL_OUTPUT", "limits.output"),
    setting("ATOLL_DISK", "limits.disk"),
    setting("ATOLL_MAX_MEMORY", "limits.max.memory"),
    setting("ATOLL_MAX_CPUS", "limits.max.cpus"),
    setting("ATOLL_MAX_PIDS", "limits.max.pids"),
    setting("ATOLL_MAX_OPEN_FILES", "limits.max.open_files"),
    setting("ATOLL_MAX_OUTPUT", "limits.max.output"),
    setting("ATOLL_MAX_DISK", "limits.max.disk"),
    setting("ATOLL_MOUNTS", "mounts.allow"),
    setting("ATOLL_TRUST_LOCAL", "engines.trust_local"),
    setting("ATOLL_DOCKER_HOST", "engines.docker.host"),
    setting("ATOLL_DOCKER_CREDENTIALS", "engines.docker.credentials"),
    setting(SERVER, "client.server"),
    setting("ATOLL_CA_FILE", "client.ca_file"),
    setting(API_KEY_FILE, "client.api_key_file"),
];

/// The variables that are no key of the settings, and what they are for.
pub const OTHERS: &[(&str, &str)] = &[
    (CONFIG, "the settings file"),
    (API_KEY, "the API key for the server of client.server"),
    (HOME, "where data and settings live"),
    (XDG_DATA_HOME, "where data lives, before HOME"),
    (XDG_CONFIG_HOME, "where settings live, before HOME"),
    (NO_COLOR, "no colour"),
    (TERM, "`dumb` for no colour and no progress bar"),
    (REQUIRE_ENGINES, "for tests: an engine that cannot run here is a failure"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{DEFAULTS, layer};

    #[test]
    fn every_key_has_one_variable_and_every_variable_a_key() {
        let keys: BTreeSet<String> = layer::keys(&DEFAULTS.parse().unwrap()).into_iter().collect();
        let named: Vec<String> = SETTINGS.iter().map(|setting| setting.key.to_owned()).collect();

        assert_eq!(keys.len(), named.len());
        assert_eq!(keys, named.into_iter().collect());
    }

    #[test]
    fn the_defaults_name_every_variable() {
        for setting in SETTINGS {
            assert!(DEFAULTS.contains(setting.name), "{}", setting.name);
        }
    }
}
