//! A file on its way: a file of its own beside its place, moved there when it is whole.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    path::{Path, PathBuf},
};

use crate::failure::{Doing as _, Failure, Result};

/// How many names to try: those of killed commands may be there still.
const NAMES: u32 = 1000;

/// Permission bits of a new file when nothing is known of the one it is a copy of.
const PLAIN: u32 = 0o666;

/// Where a copy goes.
#[derive(Debug)]
pub(crate) enum Destination {
    /// A file, old or new, which is replaced when the new one is whole.
    Part(Part),
    /// A device, a pipe or an open descriptor, which cannot be replaced.
    Direct(File),
}

impl Destination {
    /// Finds out what `target` is. A link to a file stays a link; `mode` is that of a new file,
    /// less what the umask takes away.
    ///
    /// Opening a named pipe waits for its reader.
    pub(crate) fn of(target: &Path, mode: Option<u32>) -> Result<Self> {
        let cannot = || format!("cannot write {}", target.display());
        if is_descriptor(target) {
            // Another description of the same file, whose place is not ours.
            return File::options().append(true).open(target).map(Self::Direct).doing(cannot);
        }
        match fs::metadata(target) {
            Ok(old) if old.is_file() => {
                let resolved = target.canonicalize().doing(cannot)?;
                let kept = Kept { uid: old.uid(), gid: old.gid(), mode: old.mode() & 0o777 };
                Part::beside(resolved, 0o600, Some(kept)).map(Self::Part)
            }
            Ok(_) => File::options().write(true).open(target).map(Self::Direct).doing(cannot),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if target.is_symlink() {
                    return Err(Failure::new(format!("{}: a link to nothing", cannot())));
                }
                let mode = mode.map_or(PLAIN, |mode| mode & 0o777);
                Part::beside(target.to_owned(), mode, None).map(Self::Part)
            }
            Err(error) => Err(error).doing(cannot),
        }
    }

    /// The file to write to.
    pub(crate) fn file(&self) -> Result<File> {
        let (Self::Part(Part { file, .. }) | Self::Direct(file)) = self;
        file.try_clone().doing(|| "cannot write".into())
    }

    /// Puts the whole file in its place.
    pub(crate) fn finish(self) -> Result {
        match self {
            Self::Part(part) => part.finish(),
            Self::Direct(_) => Ok(()),
        }
    }
}

/// Whether a path leads to what this process has open, as `/dev/stdout` does.
fn is_descriptor(path: &Path) -> bool {
    let named = ["/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name));
    named || ["/dev/fd", "/proc/self/fd"].iter().any(|directory| path.starts_with(directory))
}

/// Removed when dropped unfinished, so that neither a failure nor ^C leaves half a file.
#[derive(Debug)]
pub(crate) struct Part {
    file: File,
    unfinished: PathBuf,
    target: PathBuf,
    old: Option<Kept>,
    finished: bool,
}

/// What stays of a file that is replaced.
#[derive(Debug, Clone, Copy)]
struct Kept {
    uid: u32,
    gid: u32,
    mode: u32,
}

impl Part {
    fn beside(target: PathBuf, mode: u32, old: Option<Kept>) -> Result<Self> {
        if target.file_name().is_none() {
            return Err(Failure::usage(format!("{} has no name", target.display())));
        }
        let (unfinished, file) =
            new(&target, mode).doing(|| format!("cannot write {}", target.display()))?;
        Ok(Self { file, unfinished, target, old, finished: false })
    }

    fn finish(mut self) -> Result {
        let cannot = || format!("cannot write {}", self.target.display());
        if let Some(old) = &self.old {
            // Only root can, and then it should; whoever else may write here owns what is written.
            let _ = fchown(&self.file, Some(old.uid), Some(old.gid));
            self.file.set_permissions(Permissions::from_mode(old.mode)).doing(cannot)?;
        }
        fs::rename(&self.unfinished, &self.target).doing(cannot)?;
        self.finished = true;
        Ok(())
    }
}

/// Makes a file with a name of its own beside `target`.
fn new(target: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..NAMES {
        let path = target.with_file_name(format!(".atoll-{}-{number}.part", std::process::id()));
        match File::options().write(true).create_new(true).mode(mode).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
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
    use std::{io::Write as _, os::unix::fs::symlink};

    use super::*;

    fn put(target: &Path, mode: Option<u32>, content: &[u8]) {
        let destination = Destination::of(target, mode).unwrap();
        destination.file().unwrap().write_all(content).unwrap();
        destination.finish().unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn an_unfinished_file_is_not_left() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");

        let destination = Destination::of(&target, None).unwrap();
        destination.file().unwrap().write_all(b"half").unwrap();
        drop(destination);

        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_finished_file_replaces_the_old_one_and_keeps_its_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();

        let destination = Destination::of(&target, Some(0o755)).unwrap();
        destination.file().unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        destination.finish().unwrap();

        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(mode(&target), 0o640);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_can_be_run_if_its_original_can() {
        let directory = tempfile::tempdir().unwrap();
        let (program, text) = (directory.path().join("a"), directory.path().join("b"));

        put(&program, Some(0o4700), b"x");
        put(&text, Some(0o600), b"x");

        assert_eq!((mode(&program), mode(&text)), (0o700, 0o600));
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink("file", &link).unwrap();

        put(&link, None, b"new");

        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn a_link_to_nothing_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        symlink("nothing", &link).unwrap();

        assert!(Destination::of(&link, None).is_err());
        assert!(link.is_symlink());
    }

    #[test]
    fn a_device_is_written_to_and_stays() {
        put(Path::new("/dev/null"), Some(0o644), b"gone");

        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn what_a_killed_copy_left_is_in_nobodys_way() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        let left = format!(".atoll-{}-0.part", std::process::id());
        fs::write(directory.path().join(&left), "left").unwrap();

        put(&target, None, b"new");

        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(fs::read(directory.path().join(left)).unwrap(), b"left");
    }
}
