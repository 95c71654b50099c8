//! Removing a directory that a guest has filled.
//!
//! However deep it is, in constant memory of the stack and two descriptors, and never through a
//! link: a name is followed only as the directory it was seen to be. Nothing of the sandbox runs
//! any more when this does.

use std::{
    ffi::CString,
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fstat, openat, statat, unlinkat},
    io::Errno,
};

/// Removes a directory and all it holds. One that is not there is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let mut current = match open(CWD, path) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let mut way: Vec<(CString, u64)> = Vec::new();
    loop {
        if let Some(name) = empty(&current)? {
            let child = open(current.as_fd(), name.as_c_str())?;
            way.push((name, fstat(&current)?.st_ino));
            current = child;
            continue;
        }
        let Some((name, inode)) = way.pop() else { break };
        current = open(current.as_fd(), c"..")?;
        if fstat(&current)?.st_ino != inode {
            return Err(io::Error::other("a directory was moved while it was removed"));
        }
        ignoring_absence(unlinkat(&current, name, AtFlags::REMOVEDIR))?;
    }
    drop(current);
    Ok(ignoring_absence(unlinkat(CWD, path, AtFlags::REMOVEDIR))?)
}

/// Removes all but the directories that hold something, and names one of those.
fn empty(directory: &OwnedFd) -> io::Result<Option<CString>> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let is_directory = match entry.file_type() {
            FileType::Unknown => {
                let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode).is_dir()
            }
            known => known.is_dir(),
        };
        if !is_directory {
            ignoring_absence(unlinkat(directory, name, AtFlags::empty()))?;
            continue;
        }
        match unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Some(name.to_owned())),
            other => ignoring_absence(other)?,
        }
    }
    Ok(None)
}

/// Opens a directory that may have been closed to its owner.
fn open<P: rustix::path::Arg + Copy>(at: impl AsFd, name: P) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(at.as_fd(), name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            chmodat(at.as_fd(), name, Mode::RWXU, AtFlags::empty())?;
            openat(at.as_fd(), name, flags, Mode::empty())
        }
        other => other,
    }
}

fn ignoring_absence(result: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    #[test]
    fn all_is_removed_and_nothing_beyond_a_link() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let parent = tempfile::tempdir().unwrap();
        let top = parent.path().join("top");
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("a/b/file"), "x").unwrap();
        symlink(outside.path(), top.join("a/link")).unwrap();
        symlink(outside.path().join("kept"), top.join("a/b/link")).unwrap();
        fs::set_permissions(top.join("a/b"), fs::Permissions::from_mode(0o000)).unwrap();

        remove(&top).unwrap();

        assert!(!top.exists());
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let top = parent.path().join("top");
        fs::create_dir(&top).unwrap();
        let mut current = open(CWD, &top).unwrap();
        let name = "d".repeat(100);
        for _ in 0..100 {
            rustix::fs::mkdirat(&current, &name, Mode::RWXU).unwrap();
            current = open(current.as_fd(), &*name).unwrap();
        }
        drop(current);

        remove(&top).unwrap();

        assert!(!top.exists());
    }

    #[test]
    fn what_is_not_there_is_fine() {
        let parent = tempfile::tempdir().unwrap();

        remove(&parent.path().join("missing")).unwrap();
    }
}
