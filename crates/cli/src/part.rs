//! A file on its way: `NAME.part` beside its place, moved there when it is whole.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use crate::failure::{Doing as _, Failure, Result};

/// Removed when dropped unfinished, so that neither a failure nor ^C leaves half a file.
#[derive(Debug)]
pub(crate) struct Part {
    unfinished: PathBuf,
    target: PathBuf,
    finished: bool,
}

impl Part {
    pub(crate) fn beside(target: &Path) -> Result<Self> {
        let mut name = target
            .file_name()
            .ok_or_else(|| Failure::usage(format!("{} has no name", target.display())))?
            .to_owned();
        name.push(".part");
        let part = target.with_file_name(name);
        // Two copies to one place at one time would mix.
        File::create_new(&part).doing(|| format!("cannot write {}", part.display()))?;
        Ok(Self { unfinished: part, target: target.to_owned(), finished: false })
    }

    /// The file to write to.
    pub(crate) fn file(&self) -> Result<File> {
        File::options()
            .write(true)
            .open(&self.unfinished)
            .doing(|| format!("cannot write {}", self.unfinished.display()))
    }

    /// Puts the whole file in its place.
    pub(crate) fn finish(mut self) -> Result {
        fs::rename(&self.unfinished, &self.target)
            .doing(|| format!("cannot write {}", self.target.display()))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn an_unfinished_file_is_not_left() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");

        let part = Part::beside(&target).unwrap();
        part.file().unwrap().write_all(b"half").unwrap();
        drop(part);

        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_finished_file_replaces_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        fs::write(&target, "old").unwrap();

        let part = Part::beside(&target).unwrap();
        part.file().unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        part.finish().unwrap();

        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
