//! Runs a test program as an ordinary user, for real: whoever starts it as root.
//!
//! ```ignore
//! fn main() -> ExitCode {
//!     if let Some(code) = ordinary::again() {
//!         return code;
//!     }
//!     // Here nobody is root.
//! }
//! ```

use std::{
    fs::{self, Permissions},
    io,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Command, ExitCode},
    sync::atomic::{AtomicU32, Ordering},
};

use tempfile::TempDir;

/// Users no host has, chosen by the test program's own number and one after the other: no two at
/// one time are the same.
const FIRST: u32 = 700_000;
const USERS: u32 = 20_000_000;
const EACH: u32 = 256;

/// What of its surroundings the ordinary user's program keeps.
const KEPT: [&str; 3] = ["ATOLL_REQUIRE_ENGINES", "RUST_BACKTRACE", "PATH"];

/// If this is root: runs this very program, with the same arguments, as an ordinary user with an
/// own home, and tells how it ended. If not: none, and there is nothing to be done.
pub fn again() -> Option<ExitCode> {
    if !is_root() {
        return None;
    }
    let ended = Home::new().and_then(|home| {
        let program = std::env::current_exe()?;
        home.command(&program, std::env::args_os().skip(1))?.status()
    });
    Some(match ended {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = io::Write::write_all(
                &mut io::stderr(),
                format!("no ordinary user can be had: {error}\n").as_bytes(),
            );
            ExitCode::FAILURE
        }
    })
}

/// Whether this process is root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// An ordinary user of the host, with a place of its own; gone when dropped. Only root can make
/// one.
#[derive(Debug)]
pub struct Home {
    place: TempDir,
    user: u32,
}

impl Home {
    pub fn new() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % EACH;
        let user = FIRST + std::process::id().wrapping_mul(EACH) % USERS + number;
        let place = tempfile::Builder::new().prefix("atoll-user.").tempdir()?;
        fs::set_permissions(place.path(), Permissions::from_mode(0o755))?;
        for name in ["home", "tmp", "run"] {
            let own = place.path().join(name);
            fs::create_dir(&own)?;
            chown(&own, Some(user), Some(user))?;
            fs::set_permissions(&own, Permissions::from_mode(0o700))?;
        }
        Ok(Self { place, user })
    }

    pub fn user(&self) -> u32 {
        self.user
    }

    /// The user's home directory.
    pub fn path(&self) -> std::path::PathBuf {
        self.place.path().join("home")
    }

    /// A command of this user. The program is copied to where the user can read it, and sees
    /// little of this process's environment.
    pub fn command(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = std::ffi::OsString>,
    ) -> io::Result<Command> {
        let name = program.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let copy = self.place.path().join(name);
        if !copy.exists() {
            fs::copy(program, &copy)?;
            fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
        }
        let mut command = Command::new(copy);
        command.args(arguments).env_clear().current_dir(self.path());
        for name in KEPT {
            command.envs(kept(name).map(|value| (name, value)));
        }
        for (name, place) in [("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_RUNTIME_DIR", "run")] {
            command.env(name, self.place.path().join(place));
        }
        // Who changes its user this way has no other groups.
        command.uid(self.user).gid(self.user);
        Ok(command)
    }
}

#[expect(clippy::disallowed_methods, reason = "a test program's own surroundings are passed on")]
fn kept(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}
