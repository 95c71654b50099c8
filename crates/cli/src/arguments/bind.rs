//! `-v HOST:GUEST[:ro|rw]`.

use std::{env, path::PathBuf, str::FromStr};

use atoll_types::session::{MountMode, MountRequest};

use crate::failure::{Doing as _, Failure, Result};

/// Where `--here` shows the current directory.
pub(crate) const HERE: &str = "/here";

/// A host directory to show inside, as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bind {
    host: PathBuf,
    guest: String,
    mode: MountMode,
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (places, mode) = match text.rsplit_once(':') {
            Some((places, "ro")) => (places, MountMode::Ro),
            Some((places, "rw")) => (places, MountMode::Rw),
            _ => (text, MountMode::Ro),
        };
        let (host, guest) = places
            .rsplit_once(':')
            .ok_or("write it as HOST:GUEST, HOST:GUEST:ro or HOST:GUEST:rw")?;
        if host.is_empty() {
            return Err("the host directory is empty".to_owned());
        }
        if !guest.starts_with('/') {
            return Err(format!("the guest directory `{guest}` is not an absolute path"));
        }
        Ok(Self { host: host.into(), guest: guest.to_owned(), mode })
    }
}

impl Bind {
    /// The current directory, at [`HERE`].
    pub(crate) fn here(mode: MountMode) -> Self {
        Self { host: ".".into(), guest: HERE.to_owned(), mode }
    }

    /// The request, with the host directory made absolute and looked at: a misspelled one is
    /// found out here, where its name may be said.
    pub(crate) fn request(&self) -> Result<MountRequest> {
        let shown = self.host.display();
        let here = env::current_dir().doing(|| "cannot tell the current directory".into())?;
        let host =
            here.join(&self.host).canonicalize().doing(|| format!("cannot mount {shown}"))?;
        if !host.is_dir() {
            return Err(Failure::new(format!("cannot mount {shown}: it is not a directory")));
        }
        let host = host
            .into_os_string()
            .into_string()
            .map_err(|_| Failure::new(format!("cannot mount {shown}: its name is not UTF-8")))?;
        Ok(MountRequest { host, guest: self.guest.clone(), mode: self.mode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, String, MountMode) {
        let bind: Bind = text.parse().unwrap();
        (bind.host.display().to_string(), bind.guest, bind.mode)
    }

    #[test]
    fn a_mount_is_read_only_unless_it_says_rw() {
        assert_eq!(parsed("/a:/b"), ("/a".into(), "/b".into(), MountMode::Ro));
        assert_eq!(parsed("/a:/b:ro"), ("/a".into(), "/b".into(), MountMode::Ro));
        assert_eq!(parsed("./a:/b:rw"), ("./a".into(), "/b".into(), MountMode::Rw));
    }

    #[test]
    fn a_colon_in_the_host_directory_is_its_own() {
        assert_eq!(parsed("/a:b:/c:rw"), ("/a:b".into(), "/c".into(), MountMode::Rw));
    }

    #[test]
    fn half_a_mount_is_refused() {
        for bad in ["/a", "/a:ro", ":/b", "/a:b", "/a:", "", "/a:/b:rx"] {
            assert!(bad.parse::<Bind>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let bind: Bind = "/no/such/place:/b".parse().unwrap();

        let message = bind.request().unwrap_err().message;

        assert!(message.starts_with("cannot mount /no/such/place"), "{message}");
    }
}
