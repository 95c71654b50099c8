//! Who makes sandboxes here: the host's root, or an ordinary user.
//!
//! Root has ids to give away, and the rights to show any directory under other ids. An ordinary
//! user makes the same sandbox out of a user namespace, in which there is nobody but that user.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use atoll_engine::{Error, Result};
use rustix::thread::CapabilitySet;

use crate::{
    attempt,
    config::Config,
    ids::{self, Lease},
};

/// `mount_setattr`, without which nothing is shown read-only in one step.
const OLDEST: (u32, u32) = (5, 12);

/// From here on processes are counted for each user namespace.
const COUNTS: (u32, u32) = (5, 14);

/// What the launcher of the host's root cannot do without.
const NEEDED: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::SETUID).union(CapabilitySet::SETGID);

/// Whoever runs this.
#[derive(Debug, Clone)]
pub(crate) enum Maker {
    Root,
    Ordinary {
        /// Set once a sandbox could be made.
        proved: Arc<OnceLock<()>>,
    },
}

impl Maker {
    pub(crate) fn find() -> Self {
        if rustix::process::geteuid().is_root() {
            Self::Root
        } else {
            Self::Ordinary { proved: Arc::default() }
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self, Self::Root)
    }

    /// As a person may read it.
    pub(crate) fn described(&self) -> &'static str {
        match self {
            Self::Root => "root: ids of its own for each sandbox",
            Self::Ordinary { .. } => "an ordinary user: one id, the agent's and its guests'",
        }
    }

    /// Whether an rlimit on processes holds for one sandbox. Root's sandboxes have their own
    /// users, but root needs no such limit: it has control groups.
    pub(crate) fn counts_processes(&self) -> bool {
        !self.is_root() && kernel() >= Some(COUNTS)
    }

    /// Ids for one more sandbox.
    pub(crate) fn lease(&self, config: &Config) -> io::Result<Lease> {
        match self {
            Self::Root => ids::lease(&config.ids),
            Self::Ordinary { .. } => ids::oneself(),
        }
    }

    /// Whether sandboxes can be made here; if not, the error says how they could. Changes nothing,
    /// and blocks for a moment.
    pub(crate) fn check(&self, config: &Config) -> Result<()> {
        if kernel().is_none_or(|found| found < OLDEST) {
            return Err(Error::unavailable(format!("Linux {} is too old", release()))
                .hint("use Linux 5.12 or newer"));
        }
        match self {
            Self::Root => check_root(),
            Self::Ordinary { proved } if proved.get().is_some() => Ok(()),
            Self::Ordinary { proved } => {
                attempt::attempt(self, config)?;
                proved.get_or_init(|| ());
                Ok(())
            }
        }
    }
}

fn check_root() -> Result<()> {
    let held = rustix::thread::capabilities(None).map(|sets| sets.effective);
    if !held.is_ok_and(|held| held.contains(NEEDED)) {
        return Err(Error::unavailable("this root may not make namespaces or change ids")
            .hint("in a container, give it CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID"));
    }
    if attempt::count("max_user_namespaces") == Some(0) {
        return Err(Error::unavailable("this kernel makes no user namespaces")
            .hint("sysctl user.max_user_namespaces=10000"));
    }
    Ok(())
}

pub(crate) fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn kernel() -> Option<(u32, u32)> {
    version(&release())
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_whatever_follows_the_numbers() {
        assert_eq!(version("6.18.44-fc"), Some((6, 18)));
        assert_eq!(version("5.10-arch1"), Some((5, 10)));
        assert_eq!(version("unknown"), None);
    }
}
