//! Names of things. A value in hand has been checked.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The text is not an id: lower-case letters, digits and inner dashes, at most 63 of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id is 1 to 63 lower-case letters, digits and inner dashes")]
pub struct InvalidId;

/// Names a session: what a client holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// Names a sandbox: what an engine made. Never used again for another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "String", into = "String")]
pub struct SandboxId(String);

/// Names a process of a sandbox, counted up by its agent; not a pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct ProcessId(pub u64);

impl SessionId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SandboxId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn checked(text: String) -> Result<String, InvalidId> {
    let bytes = text.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let valid = matches!(bytes.len(), 1..=63)
        && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
        && bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain);
    if valid { Ok(text) } else { Err(InvalidId) }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        checked(text).map(Self)
    }
}

impl TryFrom<String> for SandboxId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        checked(text).map(Self)
    }
}

impl FromStr for SessionId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        text.to_owned().try_into()
    }
}

impl FromStr for SandboxId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        text.to_owned().try_into()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl From<SandboxId> for String {
    fn from(id: SandboxId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_plain_word() {
        for good in ["a", "0", "s-1", "0f3c", &"x".repeat(63)] {
            assert!(good.parse::<SandboxId>().is_ok(), "{good}");
        }
    }

    #[test]
    fn what_could_be_a_path_or_an_option_is_no_id() {
        for bad in ["", "-a", "a-", "A", "a/b", "..", "a.b", "a b", "ä", "a\0", &"x".repeat(64)] {
            assert!(bad.parse::<SandboxId>().is_err(), "{bad}");
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
    }
}
