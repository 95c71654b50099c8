//! `SESSION:PATH`, or a path of the host.

use std::{path::PathBuf, str::FromStr};

use atoll_types::id::SessionId;

/// One end of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A path in a session's sandbox; empty for its home directory.
    Session(SessionId, String),
    Host(PathBuf),
    /// `-`: standard input or standard output.
    Stream,
}

impl FromStr for Place {
    type Err = String;

    /// What begins with `/` or `.` is of the host, whatever colons it holds.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a path is needed".to_owned());
        }
        if text == "-" {
            return Ok(Self::Stream);
        }
        let of_host = text.starts_with(['/', '.']);
        match text.split_once(':') {
            Some((session, path)) if !of_host => {
                let id = session
                    .parse()
                    .map_err(|_| format!("`{session}` is no session; write ./{text} for a file"))?;
                Ok(Self::Session(id, path.to_owned()))
            }
            _ => Ok(Self::Host(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_and_a_colon_make_a_path_inside() {
        let id: SessionId = "s-1".parse().unwrap();

        assert_eq!("s-1:a/b".parse(), Ok(Place::Session(id.clone(), "a/b".into())));
        assert_eq!("s-1:".parse(), Ok(Place::Session(id, String::new())));
    }

    #[test]
    fn anything_else_is_of_the_host() {
        for path in ["a", "./s-1:a", "/x:y", "../b"] {
            assert_eq!(path.parse(), Ok(Place::Host(path.into())), "{path}");
        }
        assert_eq!("-".parse(), Ok(Place::Stream));
    }

    #[test]
    fn what_can_be_neither_is_refused() {
        assert!("".parse::<Place>().is_err());
        assert_eq!(
            "C:x".parse::<Place>(),
            Err("`C` is no session; write ./C:x for a file".to_owned())
        );
    }
}
