//! The files of a server, in its data directory.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::failure::{Doing as _, Failure, Result};

/// A data directory.
#[derive(Debug, Clone)]
pub(crate) struct Place(PathBuf);

/// The longest path a unix socket can have, its end included.
const LONGEST_SOCKET: usize = 108;

impl Place {
    pub(crate) fn new(data: &Path) -> Self {
        Self(data.to_owned())
    }

    /// Makes the directory, for its owner alone.
    pub(crate) fn make(&self) -> Result {
        let shown = self.0.display();
        if self.socket().as_os_str().len() >= LONGEST_SOCKET {
            return Err(Failure::new(format!("the data directory's path is too long: {shown}"))
                .hint("a unix socket in it must have a path of at most 107 bytes"));
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .doing(|| format!("cannot make the data directory {shown}"))?;
        let about = fs::metadata(&self.0).doing(|| format!("cannot use {shown}"))?;
        if about.permissions().mode() & 0o022 != 0 {
            return Err(Failure::new(format!("others can write to the data directory {shown}"))
                .hint(format!("chmod go-w {shown}")));
        }
        Ok(())
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("daemon.sock")
    }

    /// Held by the server while it lives.
    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("daemon.lock")
    }

    /// Held by the command that starts a server.
    pub(crate) fn start_lock(&self) -> PathBuf {
        self.0.join("start.lock")
    }

    /// What the server says of itself.
    pub(crate) fn record(&self) -> PathBuf {
        self.0.join("daemon.json")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("daemon.log")
    }

    /// The one before, once it was too long.
    pub(crate) fn old_log(&self) -> PathBuf {
        self.0.join("daemon.log.old")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("atoll.db")
    }

    /// Whether a server has ever kept records here. A directory one may not look into is an error:
    /// nobody can tell.
    pub(crate) fn used(&self) -> Result<bool> {
        self.store().try_exists().doing(|| format!("cannot look into {}", self.0.display()))
    }

    /// Where an engine keeps its sandboxes.
    pub(crate) fn engine(&self, name: &str) -> PathBuf {
        self.0.join("engines").join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_made_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("a/b");

        Place::new(&data).make().unwrap();

        assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();

        assert!(Place::new(directory.path()).make().is_err());
    }

    #[test]
    fn a_place_nobody_can_look_into_is_not_one_without_records() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();

        assert!(!Place::new(&directory.path().join("missing")).used().unwrap());
        assert!(Place::new(&file).used().is_err());
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused_before_anything_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("x".repeat(100));

        assert!(Place::new(&data).make().is_err());
        assert!(!data.exists());
    }
}
