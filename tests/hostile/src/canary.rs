//! Secrets of the host that must never be seen inside nor change (I1).

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::check::Broken;

/// The variable of the harness's own environment that holds a secret.
pub const VARIABLE: &str = "ATOLL_HOSTILE_CANARY";

/// Two files and a variable, each with its own secret, and a file whose name is one.
#[derive(Debug)]
pub struct Canary {
    directory: TempDir,
    private: String,
    readable: String,
    name: String,
    pub(crate) variable: String,
}

impl Canary {
    /// Writes the files; `variable` is what the harness's environment holds.
    pub fn new(variable: String) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("atoll-canary-").tempdir()?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        let (private, readable, name) = (token()?, token()?, token()?);
        let canary = Self { directory, private, readable, name, variable };
        fs::write(canary.directory.path().join(&canary.name), "")?;
        for (path, content, mode) in [
            (canary.private_path(), &canary.private, 0o600),
            (canary.readable_path(), &canary.readable, 0o644),
        ] {
            fs::write(&path, content)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        Ok(canary)
    }

    /// Readable by root alone.
    pub fn private_path(&self) -> PathBuf {
        self.directory.path().join("private")
    }

    /// Readable by anybody on the host.
    pub fn readable_path(&self) -> PathBuf {
        self.directory.path().join("readable")
    }

    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Fails if any of the secrets is in these bytes.
    pub fn absent_from(&self, what: &str, bytes: &[u8]) -> Result<()> {
        for (name, token) in [
            ("private file", &self.private),
            ("readable file", &self.readable),
            ("name of a file", &self.name),
            ("environment", &self.variable),
        ] {
            if bytes.windows(token.len()).any(|window| window == token.as_bytes()) {
                return Err(Broken(format!("I1: the host's {name} is in {what}")).into());
            }
        }
        Ok(())
    }

    /// Fails if a file changed or something else is beside them.
    pub fn unchanged(&self) -> Result<()> {
        for (path, content) in
            [(self.private_path(), &self.private), (self.readable_path(), &self.readable)]
        {
            let now = fs::read(&path).unwrap_or_default();
            if now != content.as_bytes() {
                return Err(Broken(format!("I1: {} of the host changed", path.display())).into());
            }
        }
        let mut names: Vec<_> = fs::read_dir(self.directory.path())
            .context("the canary's directory")?
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        names.sort();
        let mut own = ["private", "readable", self.name.as_str()];
        own.sort_unstable();
        if names != own {
            return Err(Broken(format!("I1: the canary's directory holds {names:?}")).into());
        }
        Ok(())
    }
}

/// 128 random bits as text.
pub fn token() -> Result<String> {
    use std::{fmt::Write as _, io::Read as _};
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").ok();
        text
    }))
}
