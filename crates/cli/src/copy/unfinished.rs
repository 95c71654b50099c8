//! A new directory that is not there before it is whole.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::failure::{Doing as _, Failure, Result};

/// How many names to try: those of killed commands may be there still.
const NAMES: u32 = 1000;

/// Removed when dropped unfinished, with all it holds.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
    target: PathBuf,
    finished: bool,
}

impl Unfinished {
    /// Makes a directory beside `target`, whose own directory must be there.
    pub(crate) fn beside(target: &Path) -> Result<Self> {
        let cannot = || format!("cannot write {}", target.display());
        if target.file_name().is_none() {
            return Err(Failure::usage(format!("{} has no name", target.display())));
        }
        for number in 0..NAMES {
            let name = format!(".atoll-{}-{number}.part", std::process::id());
            let path = target.with_file_name(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path, target: target.to_owned(), finished: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).doing(cannot),
            }
        }
        Err(Failure::new(format!("{}: too many unfinished copies are there", cannot())))
    }

    pub(crate) fn open(&self) -> Result<File> {
        File::open(&self.path).doing(|| format!("cannot write {}", self.target.display()))
    }

    /// Puts it in its place, if nothing has taken that meanwhile.
    pub(crate) fn finish(mut self) -> Result {
        let (from, to) = (&self.path, &self.target);
        let renamed = match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // Not every file system knows how; an empty directory may then be replaced.
            Err(rustix::io::Errno::INVAL) => fs::rename(from, to),
            renamed => renamed.map_err(io::Error::from),
        };
        renamed.doing(|| format!("cannot write {}", to.display()))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            remove(&self.path);
        }
    }
}

/// Removes a tree, also where its directories do not allow it.
fn remove(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    let mut ahead = vec![path.to_owned()];
    while let Some(directory) = ahead.pop() {
        let _ = fs::set_permissions(&directory, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        ahead.extend(below.map(|entry| entry.path()));
    }
    let _ = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_unfinished_directory_is_not_left() {
        let place = tempfile::tempdir().unwrap();
        let unfinished = Unfinished::beside(&place.path().join("new")).unwrap();
        let inner = unfinished.path.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), "").unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o500)).unwrap();

        drop(unfinished);

        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_finished_directory_takes_nobodys_place() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("new");
        let (first, second) =
            (Unfinished::beside(&target).unwrap(), Unfinished::beside(&target).unwrap());

        assert!(!target.exists());
        first.finish().unwrap();
        assert!(target.is_dir());
        assert!(second.finish().is_err());

        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
