//! What of the host is Atoll's own, and no sandbox's to see.
//!
//! On a mount the guest is its owner. Were the sockets of agents, or the records, in what it is
//! shown, it could do in every sandbox what it likes: connecting needs no writable mount.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use atoll_engine::{Error, Result};

/// Directories, without links in their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Private(Vec<PathBuf>);

impl Private {
    /// The engine's state directory, which must be there, and of the others those that are.
    pub fn find(state: &Path, others: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        let mut found = vec![fs::canonicalize(state)?];
        for path in others {
            match fs::canonicalize(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                path => found.push(path?),
            }
        }
        Ok(Self(found))
    }

    /// What is to be covered in a mount of `host`, as paths in it. What is itself private is
    /// refused.
    ///
    /// A comparison of paths is enough, for engines follow no link in `host`.
    pub fn hidden_in(&self, host: &Path) -> Result<Vec<PathBuf>> {
        if host.components().any(|part| part == Component::ParentDir) {
            return Err(Error::invalid("a directory to be shown has a path with `..`"));
        }
        if self.0.iter().any(|private| host.starts_with(private)) {
            return Err(Error::invalid("Atoll's own data directory cannot be mounted")
                .hint("mount another directory, or set `data_dir` elsewhere"));
        }
        let inside = self.0.iter().filter_map(|private| private.strip_prefix(host).ok());
        let inside: Vec<_> = inside.collect();
        // One inside another is gone with it.
        let outermost =
            |path: &&Path| !inside.iter().any(|other| *path != *other && path.starts_with(other));
        let mut hidden: Vec<_> =
            inside.iter().copied().filter(outermost).map(Path::to_owned).collect();
        hidden.sort();
        hidden.dedup();
        Ok(hidden)
    }
}

#[cfg(test)]
mod tests {
    use atoll_engine::ErrorKind;

    use super::*;

    fn private() -> Private {
        Private(["/h/data/state", "/h/data", "/h/config"].map(PathBuf::from).to_vec())
    }

    #[test]
    fn what_is_private_and_what_is_in_it_is_refused() {
        for host in ["/h/data", "/h/data/", "/h/data/x", "/h/./config", "/h/x/../data", "/h/.."] {
            let error = private().hidden_in(Path::new(host)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{host}");
            assert!(!error.message().contains("/h"), "{error}");
        }
    }

    #[test]
    fn what_holds_it_is_shown_without_it() {
        let hidden = |host: &str| private().hidden_in(Path::new(host)).unwrap();

        assert_eq!(hidden("/h"), ["config", "data"].map(PathBuf::from));
        assert_eq!(hidden("/"), ["h/config", "h/data"].map(PathBuf::from));
        assert!(hidden("/h/data-of-mine").is_empty());
        assert!(hidden("/elsewhere").is_empty());
    }

    #[test]
    fn links_to_what_is_private_are_looked_through() {
        let place = tempfile::tempdir().unwrap();
        let (real, link) = (place.path().join("real"), place.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();

        let private = Private::find(&link, [place.path().join("not there")]).unwrap();

        assert_eq!(private, Private(vec![fs::canonicalize(&real).unwrap()]));
    }
}
