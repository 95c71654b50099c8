//! What a server says of itself, for commands that look for one.

use std::{fmt, fs, io::Write as _, net::SocketAddr, os::unix::fs::MetadataExt as _};

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
}

impl Record {
    /// This process as a server.
    pub(crate) fn of_this_process(mode: Mode, listen: Option<SocketAddr>, tls: bool) -> Self {
        let pid = std::process::id();
        let scheme = if tls { "https" } else { "http" };
        Self {
            pid,
            start_time: witness::started(pid).unwrap_or_default(),
            mode,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: build(),
            started_at: Timestamp::now(),
            url: listen.map(|listen| format!("{scheme}://{listen}")),
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

    /// Whether it is of the very program that asks.
    pub(crate) fn is_ours(&self) -> bool {
        self.build == build()
    }
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

    #[test]
    fn a_record_of_a_living_server_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::new(directory.path());
        let record = Record::of_this_process(Mode::Private, None, false);

        record.write(&place).unwrap();

        assert_eq!(Record::read(&place).as_ref(), Some(&record));
        assert!(record.is_ours());
    }

    #[test]
    fn a_record_of_a_dead_server_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::new(directory.path());
        let record = Record::of_this_process(Mode::Serve, None, false);

        Record { start_time: 1, ..record }.write(&place).unwrap();

        assert_eq!(Record::read(&place), None);
    }
}
