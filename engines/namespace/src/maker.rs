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
    allowance::Allowance,
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
        /// Ids it has besides its own.
        allowance: Option<Allowance>,
        /// Set once a sandbox could be made: whether with those.
        proved: Arc<OnceLock<bool>>,
    },
}

impl Maker {
    pub(crate) fn find(config: &Config) -> Self {
        if rustix::process::geteuid().is_root() {
            Self::Root
        } else {
            let allowance = config.lent_ids.as_ref().and_then(|_| Allowance::find());
            Self::Ordinary { allowance, proved: Arc::default() }
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self, Self::Root)
    }

    /// As a person may read it.
    pub(crate) fn described(&self) -> &'static str {
        match self {
            Self::Root => "root: ids of its own for each sandbox",
            Self::Ordinary { proved, .. } if proved.get() == Some(&true) => {
                "an ordinary user: two ids of its allowance for each sandbox"
            }
            Self::Ordinary { .. } => "an ordinary user: one id, the agent's and its guests'",
        }
    }

    /// Whether an rlimit on processes holds for one sandbox. Root's sandboxes have their own
    /// users, but root needs no such limit: it has control groups.
    pub(crate) fn counts_processes(&self) -> bool {
        !self.is_root() && kernel() >= Some(COUNTS)
    }

    /// Ids for one more sandbox, in which the host's directories are `shown`.
    pub(crate) fn lease(&self, config: &Config, shown: bool) -> io::Result<Lease> {
        match (self, &config.lent_ids) {
            (Self::Root, _) => ids::lease(&config.ids),
            (Self::Ordinary { allowance: Some(allowance), proved }, Some(path))
                if proved.get() == Some(&true) =>
            {
                ids::borrowed(path, allowance, shown)
            }
            (Self::Ordinary { .. }, _) => ids::oneself(),
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
            Self::Ordinary { proved, .. } if proved.get().is_some() => Ok(()),
            Self::Ordinary { allowance, proved } => {
                // What was given may yet not work: then there is still the one it always has.
                if let (Some(allowance), Some(path)) = (allowance, &config.lent_ids) {
                    let lease = ids::borrowed(path, allowance, false);
                    match lease.map_err(untaken).and_then(attempt::attempt) {
                        Ok(()) => {
                            proved.get_or_init(|| true);
                            return Ok(());
                        }
                        Err(error) => {
                            tracing::debug!(?error, "the ids of /etc/subuid are not used");
                        }
                    }
                }
                attempt::attempt(ids::oneself().map_err(untaken)?)?;
                proved.get_or_init(|| false);
                Ok(())
            }
        }
    }
}

fn untaken(error: io::Error) -> Error {
    Error::internal("no ids can be taken").because(error)
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
