//! Which directories of the host a caller may show to a sandbox.
//!
//! A path is resolved once, here, with every link in it; what it resolves to must be allowed, and
//! that is what is mounted. Paths inside a sandbox are never resolved by the host.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

use atoll_engine::Mount;
use atoll_types::session::{MountMode, MountRequest};

use crate::{Code, Error, Result};

/// Who may mount what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountPolicy {
    /// What lies in these directories: the operator's list. An empty list allows nothing.
    Listed(Vec<AllowedMount>),
    /// Directories that belong to this user, who could do as much without Atoll; anything, for
    /// the superuser. For callers on the private socket of that user.
    OwnedBy(u32),
}

/// A directory of the host that may be mounted, with all it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedMount {
    pub host: PathBuf,
    pub writable: bool,
}

/// Where a mount would replace what the sandbox is made of.
const RESERVED: [&str; 10] =
    ["/proc", "/sys", "/dev", "/run", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// Where the host's kernel and services listen: a mount that only reads can still speak to a
/// socket or a FIFO, as its owner.
const LISTENING: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/var/run"];

impl MountPolicy {
    /// Turns a request into a mount, or says why not. Blocks on the file system.
    pub(crate) fn check(&self, request: &MountRequest) -> Result<Mount> {
        let guest = guest(&request.guest)?;
        let wanted = Path::new(&request.host);
        if !wanted.is_absolute() || request.host.contains('\0') {
            return Err(Error::invalid("`mounts.host` must be an absolute path"));
        }
        let writable = request.mode == MountMode::Rw;
        // Whether a path is there, or what it is, is not for callers who may not use it.
        let host = fs::canonicalize(wanted).map_err(|error| denied(request).because(error))?;
        self.allows(&host, writable).then_some(()).ok_or_else(|| denied(request))?;
        if listens(&host) {
            return Err(Error::new(Code::Denied, format!("`{}` may not be mounted", request.host))
                .hint("the host's kernel and services listen there; mount another directory"));
        }
        if !host.is_dir() {
            return Err(Error::invalid("`mounts.host` is not a directory"));
        }
        Ok(Mount { host, guest, writable })
    }

    fn allows(&self, host: &Path, writable: bool) -> bool {
        match self {
            Self::Listed(allowed) => allowed.iter().any(|allowed| {
                (allowed.writable || !writable)
                    && fs::canonicalize(&allowed.host).is_ok_and(|root| host.starts_with(root))
            }),
            Self::OwnedBy(uid) => {
                *uid == 0 || fs::metadata(host).is_ok_and(|found| found.uid() == *uid)
            }
        }
    }
}

/// Whether that is one of [`LISTENING`], is in it, or holds it, as `/` does.
fn listens(host: &Path) -> bool {
    LISTENING.iter().any(|at| {
        // Often a link: `/var/run` to `/run`.
        let at = fs::canonicalize(at).unwrap_or_else(|_| PathBuf::from(at));
        host.starts_with(&at) || at.starts_with(host)
    })
}

fn denied(request: &MountRequest) -> Error {
    // The path is the caller's own word, not something the host told.
    let message = format!("`{}` may not be mounted", request.host);
    Error::new(Code::Denied, message)
        .hint("the operator lists what may be mounted, and whether for writing, under `mounts`")
}

fn guest(path: &str) -> Result<PathBuf> {
    let wrong = |why: &str| Err(Error::invalid(format!("`mounts.guest` {why}")));
    let guest = Path::new(path);
    if !guest.is_absolute() || path.contains('\0') {
        return wrong("must be an absolute path");
    }
    if guest.components().any(|part| part == Component::ParentDir) {
        return wrong("must not contain `..`");
    }
    let guest: PathBuf = guest.components().collect();
    if guest == Path::new("/") || RESERVED.iter().any(|reserved| guest.starts_with(reserved)) {
        return wrong("is a place the sandbox needs itself");
    }
    Ok(guest)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn request(host: &Path, guest: &str, mode: MountMode) -> MountRequest {
        MountRequest { host: host.to_str().unwrap().to_owned(), guest: guest.to_owned(), mode }
    }

    fn listed(host: &Path, writable: bool) -> MountPolicy {
        MountPolicy::Listed(vec![AllowedMount { host: host.to_owned(), writable }])
    }

    #[test]
    fn an_empty_list_allows_nothing() {
        let place = tempfile::tempdir().unwrap();

        let error = MountPolicy::Listed(vec![])
            .check(&request(place.path(), "/data", MountMode::Ro))
            .unwrap_err();

        assert_eq!(error.code, Code::Denied);
    }

    #[test]
    fn what_lies_in_a_listed_directory_is_allowed_as_it_says() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("inner");
        fs::create_dir(&inner).unwrap();

        let read = listed(place.path(), false).check(&request(&inner, "/data/", MountMode::Ro));
        let write = listed(place.path(), false).check(&request(&inner, "/data", MountMode::Rw));
        let both = listed(place.path(), true).check(&request(&inner, "/data", MountMode::Rw));

        let host = fs::canonicalize(&inner).unwrap();
        let mount = |writable| Mount { host: host.clone(), guest: "/data".into(), writable };
        assert_eq!(read.unwrap(), mount(false));
        assert_eq!(write.unwrap_err().code, Code::Denied);
        assert_eq!(both.unwrap(), mount(true));
    }

    #[test]
    fn a_link_out_of_a_listed_directory_leads_nowhere() {
        let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = place.path().join("link");
        symlink(other.path(), &link).unwrap();
        let dotted = place.path().join("link/..");

        for host in [link, dotted] {
            let answer = listed(place.path(), true).check(&request(&host, "/d", MountMode::Ro));
            assert_eq!(answer.unwrap_err().code, Code::Denied);
        }
    }

    #[test]
    fn a_name_that_only_begins_alike_is_not_beneath() {
        let place = tempfile::tempdir().unwrap();
        let (one, longer) = (place.path().join("data"), place.path().join("data-secret"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&longer).unwrap();

        let answer = listed(&one, true).check(&request(&longer, "/d", MountMode::Ro));

        assert_eq!(answer.unwrap_err().code, Code::Denied);
    }

    #[test]
    fn what_is_not_there_and_what_is_not_allowed_look_the_same() {
        let place = tempfile::tempdir().unwrap();
        let policy = MountPolicy::Listed(vec![]);

        let absent = policy.check(&request(&place.path().join("no"), "/d", MountMode::Ro));
        let present = policy.check(&request(place.path(), "/d", MountMode::Ro));

        assert_eq!(absent.unwrap_err().code, present.unwrap_err().code);
    }

    #[test]
    fn the_places_a_sandbox_needs_are_not_covered() {
        let place = tempfile::tempdir().unwrap();
        for guest in ["/", "/proc/x", "/usr", "/dev/", "/etc/ssl", "data", "/a/../usr", ""] {
            let answer =
                listed(place.path(), true).check(&request(place.path(), guest, MountMode::Ro));
            assert_eq!(answer.unwrap_err().code, Code::InvalidRequest, "{guest}");
        }
    }

    #[test]
    fn an_owner_mounts_what_is_theirs_and_not_what_is_not() {
        let place = tempfile::tempdir().unwrap();
        let uid = fs::metadata(place.path()).unwrap().uid();
        let wish = request(place.path(), "/data", MountMode::Rw);

        assert!(MountPolicy::OwnedBy(uid).check(&wish).is_ok());
        assert_eq!(
            MountPolicy::OwnedBy(uid.wrapping_add(12345)).check(&wish).unwrap_err().code,
            Code::Denied
        );
    }

    #[test]
    fn where_the_host_listens_nobody_mounts_anything() {
        for host in ["/", "/proc", "/proc/self", "/sys", "/dev", "/run", "/var/run", "/tmp/.."] {
            let wish = request(Path::new(host), "/data", MountMode::Ro);
            for policy in [MountPolicy::OwnedBy(0), listed(Path::new("/"), true)] {
                assert_eq!(policy.check(&wish).unwrap_err().code, Code::Denied, "{host}");
            }
        }
    }

    #[test]
    fn a_file_is_no_directory() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();

        let answer = listed(place.path(), true).check(&request(&file, "/d", MountMode::Ro));

        assert_eq!(answer.unwrap_err().code, Code::InvalidRequest);
    }
}
