//! Directories of the host shown inside.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use atoll_agent_client::private::Private;
use atoll_engine::{Error, Mount, Result};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};

use crate::{boot::GUEST, files::KEPT};

const MOST_MOUNTS: usize = 32;

/// A mount that was looked at, and what it was then.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) host: PathBuf,
    pub(crate) guest: PathBuf,
    pub(crate) writable: bool,
    /// What of it is not for guests: paths inside.
    pub(crate) hidden: Vec<PathBuf>,
    identity: (u64, u64),
}

/// Checks mounts; what cannot be done is refused here, before anything is made.
pub(crate) fn check(mounts: &[Mount], private: &Private, guest: u32) -> Result<Vec<Shown>> {
    if mounts.len() > MOST_MOUNTS {
        return Err(Error::invalid(format!("a sandbox has at most {MOST_MOUNTS} mounts")));
    }
    mounts.iter().map(|mount| look(mount, private, guest)).collect()
}

fn look(mount: &Mount, private: &Private, guest: u32) -> Result<Shown> {
    inside(&mount.guest)?;
    if !mount.host.is_absolute() || mount.host.to_str().is_none() {
        return Err(Error::invalid("a directory to be shown has a relative or unreadable path"));
    }
    let hidden = private.hidden_in(&mount.host)?;
    let stat = open(CWD, &mount.host, ResolveFlags::NO_SYMLINKS)
        .and_then(|directory| Ok(fstat(&directory)?))
        .map_err(|error| Error::invalid("a directory to be shown is not there").because(error))?;
    if mount.writable && !may_write(&stat, guest) {
        return Err(Error::unsupported(format!(
            "a writable mount on the docker engine is of a directory that uid {GUEST} may write"
        ))
        .hint(format!("chown it to {GUEST}, or mount it for reading")));
    }
    Ok(Shown {
        host: mount.host.clone(),
        guest: mount.guest.components().collect(),
        writable: mount.writable,
        hidden: hidden.iter().map(|path| mount.guest.join(path)).collect(),
        identity: (stat.st_dev, stat.st_ino),
    })
}

impl Shown {
    /// Whether what the container shows there is what was looked at, and not what somebody has put
    /// into its place meanwhile: the daemon was given a path, and follows links.
    ///
    /// `init` is the container's first process.
    pub(crate) fn verify(&self, init: i32) -> Result<()> {
        let seen = || {
            let root = open(CWD, Path::new(&format!("/proc/{init}/root")), ResolveFlags::empty())?;
            let inside = self.guest.strip_prefix("/").unwrap_or(&self.guest);
            let shown = open(&root, inside, ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH)?;
            io::Result::Ok(fstat(&shown)?)
        };
        match seen() {
            Ok(stat) if (stat.st_dev, stat.st_ino) == self.identity => Ok(()),
            Ok(_) => Err(Error::invalid("a directory to be shown was replaced by another")),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(Error::unsupported("a mount cannot be verified here")
                    .hint("run the server as root, or use a daemon of its own user")
                    .because(error))
            }
            Err(error) => {
                Err(Error::invalid("a mount cannot be shown where it should be").because(error))
            }
        }
    }
}

fn open(at: impl std::os::fd::AsFd, path: &Path, how: ResolveFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat2(at, path, flags, Mode::empty(), how)?)
}

/// By its mode, for guests have no capability; groups are theirs alone.
fn may_write(stat: &Stat, guest: u32) -> bool {
    let write_and_search = |mode: u32| mode & 0o3 == 0o3;
    if stat.st_uid == guest {
        write_and_search(stat.st_mode >> 6)
    } else if stat.st_gid == guest {
        write_and_search(stat.st_mode >> 3)
    } else {
        write_and_search(stat.st_mode)
    }
}

/// Whether something can be shown at this path inside.
fn inside(path: &Path) -> Result<()> {
    let plain = path.is_absolute()
        && path != Path::new("/")
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && path.to_str().is_some_and(|text| !text.contains('\0'));
    if !plain {
        return Err(Error::invalid("a mount goes to an absolute path without `..`, not to `/`"));
    }
    if KEPT.iter().any(|kept| path.starts_with(kept)) {
        return Err(Error::invalid(format!("no mount may cover {}", KEPT.join(", "))));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use atoll_engine::ErrorKind;

    use super::*;

    fn kind(host: &Path, guest: &str, writable: bool) -> Option<ErrorKind> {
        let mount = Mount { host: host.into(), guest: guest.into(), writable };
        check(&[mount], &Private::default(), GUEST).err().map(|error| error.kind())
    }

    #[test]
    fn a_mount_covers_nothing_that_matters() {
        for guest in ["/", "/proc", "/proc/sys", "/dev", "/etc", "/.atoll/run", "/a/../etc", "a"] {
            assert_eq!(kind(Path::new("/usr"), guest, false), Some(ErrorKind::Invalid), "{guest}");
        }
        assert_eq!(kind(Path::new("/usr"), "/mnt", false), None);
    }

    #[test]
    fn no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let link = place.join("link");
        symlink("/usr", &link).unwrap();

        assert_eq!(kind(&link, "/mnt", false), Some(ErrorKind::Invalid));
        assert_eq!(kind(&link.join("share"), "/mnt", false), Some(ErrorKind::Invalid));
    }

    #[test]
    fn what_guests_could_not_write_is_refused_as_writable() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let mode = |mode| {
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode)).unwrap();
            kind(&place, "/mnt", true)
        };

        assert_eq!(mode(0o777), None);
        assert_eq!(mode(0o750), Some(ErrorKind::Unsupported));
    }

    #[test]
    fn what_is_shown_is_what_was_looked_at() {
        let own = std::process::id().cast_signed();
        let mount =
            |guest: &str| Mount { host: "/usr".into(), guest: guest.into(), writable: false };
        let shown = |guest| check(&[mount(guest)], &Private::default(), GUEST).unwrap().remove(0);

        // Seen from this process, `/usr` is at `/usr`.
        assert!(shown("/usr").verify(own).is_ok());
        assert_eq!(shown("/var").verify(own).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(shown("/no/such").verify(own).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
