//! What a server says of itself, for commands that look for one.

use std::{
    collections::BTreeMap, fmt, fs, io::Write as _, net::SocketAddr, os::unix::fs::MetadataExt as _,
};

use atoll_config::{Loaded, Origin};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Place;
use crate::{
    failure::{Doing as _, Result},
    witness, words,
};

/// Why a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// A command needed one; it ends by itself.
    Private,
    /// Someone started it, for others.
    Serve,
}

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) pid: u32,
    /// The process's start time, which tells it from a later one of the same pid.
    start_time: u64,
    pub(crate) mode: Mode,
    pub(crate) version: String,
    /// Which build of it: a version alone does not change between two builds.
    build: String,
    pub(crate) started_at: Timestamp,
    /// Where it listens besides its socket.
    pub(crate) url: Option<String>,
    /// What a private server goes by.
    #[serde(default)]
    settings: BTreeMap<String, String>,
}

impl Record {
    /// This process as a server.
    pub(crate) fn of_this_process(mode: Mode, listen: Option<SocketAddr>, loaded: &Loaded) -> Self {
        let pid = std::process::id();
        let scheme = if loaded.settings.server.tls.is_some() { "https" } else { "http" };
        Self {
            pid,
            start_time: witness::started(pid).unwrap_or_default(),
            mode,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: build(),
            started_at: Timestamp::now(),
            url: listen.map(|listen| format!("{scheme}://{listen}")),
            settings: settings(loaded).map(|(key, value, _)| (key.to_owned(), value)).collect(),
        }
    }

    /// Reads the record, if its server still lives.
    pub(crate) fn read(place: &Place) -> Option<Self> {
        let record: Self = serde_json::from_slice(&fs::read(place.record()).ok()?).ok()?;
        record.lives().then_some(record)
    }

    /// Writes it where commands look, whole or not at all.
    pub(crate) fn write(&self, place: &Place) -> Result {
        let doing = || "cannot write the server's record".to_owned();
        let path = place.record();
        let part = path.with_extension("json.part");
        let text = serde_json::to_vec_pretty(self).doing(doing)?;
        let mut file = fs::File::create(&part).doing(doing)?;
        file.write_all(&text).doing(doing)?;
        fs::rename(&part, &path).doing(doing)
    }

    /// Takes it away: nobody shall look for the server any more.
    pub(crate) fn remove(place: &Place) {
        let _ = fs::remove_file(place.record());
    }

    /// Whether the process it names is still that process.
    pub(crate) fn lives(&self) -> bool {
        witness::started(self.pid) == Some(self.start_time)
    }

    /// Whether something was said for a command, in a file or a variable, that this private server
    /// goes by another value of.
    pub(crate) fn differs(&self, loaded: &Loaded) -> bool {
        self.mode == Mode::Private
            && settings(loaded).any(|(key, value, origin)| {
                *origin != Origin::Default
                    && self.settings.get(key).is_some_and(|other| *other != value)
            })
    }

    /// Whether it is of the very program that asks.
    pub(crate) fn is_ours(&self) -> bool {
        self.build == build()
    }
}

/// The settings that matter to a private server: it has no address, and is nobody's client.
fn settings(loaded: &Loaded) -> impl Iterator<Item = (&str, String, &Origin)> {
    let matters = |key: &str| {
        let elsewhere = key == "data_dir" || key.starts_with("client.");
        matches!(key, "server.idle_exit" | "server.port_timeout")
            || !(elsewhere || key.starts_with("server."))
    };
    let all = loaded.origins.iter().filter(move |(key, _)| matters(key));
    all.map(|(key, (value, origin))| (key.as_str(), value.to_string(), origin))
}

/// What tells one build of this program from another: its file's time and size.
fn build() -> String {
    // The link of a file that was replaced while it runs still leads to the old one.
    match fs::metadata("/proc/self/exe") {
        Ok(about) => {
            format!("{}.{:09}-{}", about.mtime(), about.mtime_nsec(), about.size())
        }
        Err(_) => String::new(),
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.mode {
            Mode::Private => "private",
            Mode::Serve => "atoll serve",
        };
        write!(f, "{kind}, version {}, pid {}", self.version, self.pid)?;
        write!(f, ", up {}", words::since(self.started_at))?;
        self.url.as_ref().map_or(Ok(()), |url| write!(f, ", at {url}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(variables: &[(&str, &str)]) -> Loaded {
        let variables = variables.iter().copied().chain([("HOME", "/nowhere")]);
        atoll_config::load(&atoll_config::Flags::default(), &variables.collect()).unwrap()
    }

    #[test]
    fn only_what_was_said_and_matters_makes_a_server_another() {
        let small = [("ATOLL_MEMORY", "64m")];
        let server = Record::of_this_process(Mode::Private, None, &loaded(&small));

        assert!(server.differs(&loaded(&[("ATOLL_MEMORY", "128m")])));
        assert!(!server.differs(&loaded(&small)));
        assert!(!server.differs(&loaded(&[])));
        assert!(!server.differs(&loaded(&[("ATOLL_LISTEN", "127.0.0.1:1")])));
    }

    #[test]
    fn a_record_of_a_living_server_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::new(directory.path());
        let record = Record::of_this_process(Mode::Private, None, &loaded(&[]));

        record.write(&place).unwrap();

        assert_eq!(Record::read(&place).as_ref(), Some(&record));
        assert!(record.is_ours());
    }

    #[test]
    fn a_record_of_a_dead_server_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::new(directory.path());
        let record = Record::of_this_process(Mode::Serve, None, &loaded(&[]));

        Record { start_time: 1, ..record }.write(&place).unwrap();

        assert_eq!(Record::read(&place), None);
    }
}
