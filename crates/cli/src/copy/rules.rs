//! Where a directory goes, by the rules of `docker cp`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use atoll_client::Client;
use atoll_types::{file::Kind, id::SessionId};

use crate::failure::{Doing as _, Failure, Result};

/// What of a directory is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taken<'a> {
    /// The directory, under its name, into one that is there.
    Itself(&'a [u8]),
    /// What it holds: it was written as `DIR/.`, or has no name of its own.
    Content,
}

/// What a path asks for.
pub(crate) fn taken(path: &[u8]) -> Taken<'_> {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let path = &path[..end];
    match path.rsplit(|byte| *byte == b'/').next() {
        None | Some(b"" | b"." | b"..") => Taken::Content,
        Some(name) => Taken::Itself(name),
    }
}

/// Where in a session a directory goes: below one that is there, or to the path itself.
pub(crate) async fn in_session(
    client: &Client,
    session: &SessionId,
    path: &str,
    taken: &Taken<'_>,
) -> Result<String> {
    let path = home(path);
    if !is_directory(client, session, path).await? {
        return Ok(path.to_owned());
    }
    match taken {
        Taken::Content => Ok(path.to_owned()),
        Taken::Itself(name) => {
            let name = str::from_utf8(name)
                .map_err(|_| Failure::usage("the directory's name is not UTF-8"))?;
            Ok(format!("{}/{name}", path.trim_end_matches('/')))
        }
    }
}

/// The home directory has no name.
pub(crate) fn home(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// Whether a path of a session leads to a directory; false if there is nothing.
pub(crate) async fn is_directory(client: &Client, session: &SessionId, path: &str) -> Result<bool> {
    let entry = match client.stat_file(session, path).await {
        Ok(entry) => entry,
        // If it is the session that is missing, the copy will say so.
        Err(error) if error.code() == Some("not_found") => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match entry.kind {
        Kind::Directory => Ok(true),
        // Where it leads is the guest's business, and only the guest's.
        Kind::Symlink if client.list_files(session, path).await.is_ok() => Ok(true),
        _ => Err(Failure::new(format!("{path} is not a directory"))),
    }
}

/// Whether what is to be copied out of a session is a directory.
pub(crate) async fn is_tree(client: &Client, session: &SessionId, path: &str) -> Result<bool> {
    let entry = client.stat_file(session, home(path)).await?;
    Ok(match entry.kind {
        Kind::Directory => true,
        Kind::Symlink => client.list_files(session, home(path)).await.is_ok(),
        _ => false,
    })
}

/// Where on this machine a directory goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    New(PathBuf),
    Existing(PathBuf),
}

pub(crate) fn on_host(path: &Path, taken: &Taken<'_>) -> Result<Target> {
    use std::os::unix::ffi::OsStrExt as _;
    let existing = |path: PathBuf| {
        if path.is_dir() {
            return Ok(Target::Existing(path));
        }
        // Through a link to nothing, nothing is made.
        match fs::symlink_metadata(&path) {
            Ok(_) => Err(Failure::new(format!("{} is not a directory", path.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Target::New(path)),
            Err(error) => Err(error).doing(|| format!("cannot write {}", path.display())),
        }
    };
    match (existing(path.to_owned())?, taken) {
        (Target::Existing(path), Taken::Itself(name)) => {
            let path = path.join(std::ffi::OsStr::from_bytes(name));
            refuse_link(&path)?;
            existing(path)
        }
        (target, _) => Ok(target),
    }
}

/// A link that the command line does not name is not followed: it may have come with an earlier
/// copy, and lead anywhere.
pub(crate) fn refuse_link(path: &Path) -> Result {
    if path.is_symlink() {
        let shown = path.display();
        return Err(Failure::new(format!("{shown} is a link, which is not followed"))
            .hint("name it as the destination to write to what it leads to"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_taken_with_its_name_unless_it_ends_in_a_dot() {
        for path in ["src", "./src", "/a/src", "src/", "src//"] {
            assert_eq!(taken(path.as_bytes()), Taken::Itself(b"src"), "{path}");
        }
        for path in ["src/.", ".", "./", "..", "a/..", "/", "", "src/./"] {
            assert_eq!(taken(path.as_bytes()), Taken::Content, "{path}");
        }
    }

    #[test]
    fn a_directory_goes_into_one_that_is_there() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("there/src")).unwrap();
        fs::write(at("file"), "").unwrap();
        let src = Taken::Itself(b"src");
        let other = Taken::Itself(b"other");

        assert_eq!(on_host(&at("there"), &src), Ok(Target::Existing(at("there/src"))));
        assert_eq!(on_host(&at("there"), &other), Ok(Target::New(at("there/other"))));
        assert_eq!(on_host(&at("there"), &Taken::Content), Ok(Target::Existing(at("there"))));
        assert_eq!(on_host(&at("new"), &src), Ok(Target::New(at("new"))));
        assert!(on_host(&at("file"), &src).is_err());
        std::os::unix::fs::symlink("src", at("there/link")).unwrap();
        assert!(on_host(&at("there"), &Taken::Itself(b"link")).is_err());
        assert_eq!(
            on_host(&at("there/link"), &Taken::Content),
            Ok(Target::Existing(at("there/link")))
        );
        assert!(on_host(&at(""), &Taken::Itself(b"file")).is_err());
    }
}
