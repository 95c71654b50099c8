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
    io::{self, Write as _},
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus, Stdio},
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
    Some(told(ended))
}

/// As [`again`], in a control group of version 2 that was given to that user as systemd would.
/// Where there are none, says so and succeeds.
pub fn again_with_control_group() -> Option<ExitCode> {
    if !is_root() {
        return None;
    }
    if !Path::new(V2).join("cgroup.controllers").exists() {
        say("ignored: control groups are not version 2 here");
        return Some(ExitCode::SUCCESS);
    }
    let ended = Home::new().and_then(|home| {
        let group = Group::new(home.user)?;
        let program = home.readable(&std::env::current_exe()?)?;
        // Waits until it has been moved.
        let script = ["-c", "read -r go && exec \"$0\" \"$@\""].map(std::ffi::OsString::from);
        let words = script.into_iter().chain([program.into()]).chain(std::env::args_os().skip(1));
        let mut shell = home.command(Path::new("/bin/sh"), words)?.stdin(Stdio::piped()).spawn()?;
        fs::write(group.0.join("cgroup.procs"), shell.id().to_string())?;
        shell.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(b"go\n"))?;
        shell.wait()
    });
    Some(told(ended))
}

/// As [`again`], as a user who has ids besides its own. Without the programs that map them, says so
/// and succeeds; fails where every engine is required.
pub fn again_with_allowance() -> Option<ExitCode> {
    if !is_root() {
        return None;
    }
    if !["newuidmap", "newgidmap"].iter().all(|name| Path::new("/usr/bin").join(name).exists()) {
        say("ignored: newuidmap and newgidmap are missing (package uidmap)");
        let required = kept("ATOLL_REQUIRE_ENGINES").is_some_and(|value| !value.is_empty());
        return Some(if required { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let ended = Home::new().and_then(|home| {
        let program = home.readable(&std::env::current_exe()?)?;
        let (user, given) = (home.user, home.user.wrapping_add(ABOVE));
        let passwd = fs::read_to_string("/etc/passwd")?;
        let own = home.place.path();
        fs::write(own.join("passwd"), format!("{passwd}ordinary:x:{user}:{user}::/:/bin/sh\n"))?;
        for name in ["subuid", "subgid"] {
            fs::write(own.join(name), format!("ordinary:{given}:65536\n"))?;
        }
        // In a mount namespace of its own, so that nobody else sees those files.
        let mut command = home.surrounded(Command::new("unshare"));
        command.args(["--mount", "--propagation", "private", "sh", "-c", GIVE]);
        command.arg(own).arg(user.to_string()).arg(program);
        command.args(std::env::args_os().skip(1)).status()
    });
    Some(told(ended))
}

/// How far above a user's own id those are that it is given.
const ABOVE: u32 = 0x1000_0000;

/// Covers the files in `$0`, then runs the rest as user `$1`.
const GIVE: &str = "set -e; user=$1; shift; for name in passwd subuid subgid; do \
    [ -e /etc/$name ] || touch /etc/$name; mount --bind \"$0/$name\" /etc/$name; done; \
    exec setpriv --reuid $user --regid $user --clear-groups \"$@\"";

fn told(ended: io::Result<ExitStatus>) -> ExitCode {
    match ended {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("no ordinary user can be had: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn say(what: &str) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Where control groups of version 2 are.
const V2: &str = "/sys/fs/cgroup";

/// A control group that belongs to a user; removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new(user: u32) -> io::Result<Self> {
        fs::write(Path::new(V2).join("cgroup.subtree_control"), "+cpu +memory +pids")?;
        let group = Self(Path::new(V2).join(format!("atoll-user.{user}")));
        fs::create_dir(&group.0)?;
        for name in ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"] {
            chown(group.0.join(name), Some(user), Some(user))?;
        }
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for name in ["atoll", "atoll.daemon", ""] {
            let _ = fs::remove_dir(self.0.join(name));
        }
    }
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
    pub fn path(&self) -> PathBuf {
        self.place.path().join("home")
    }

    /// A copy of the program that this user can read.
    fn readable(&self, program: &Path) -> io::Result<PathBuf> {
        let name = program.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let copy = self.place.path().join(name);
        if !copy.exists() {
            fs::copy(program, &copy)?;
            fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
        }
        Ok(copy)
    }

    /// A command of this user. The program is copied to where the user can read it, and sees
    /// little of this process's environment.
    pub fn command(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = std::ffi::OsString>,
    ) -> io::Result<Command> {
        let mut command = self.surrounded(Command::new(self.readable(program)?));
        // Who changes its user this way has no other groups.
        command.args(arguments).uid(self.user).gid(self.user);
        Ok(command)
    }

    /// Gives a command this user's surroundings.
    fn surrounded(&self, mut command: Command) -> Command {
        command.env_clear().current_dir(self.path());
        for name in KEPT {
            command.envs(kept(name).map(|value| (name, value)));
        }
        for (name, place) in [("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_RUNTIME_DIR", "run")] {
            command.env(name, self.place.path().join(place));
        }
        command
    }
}

#[expect(clippy::disallowed_methods, reason = "a test program's own surroundings are passed on")]
fn kept(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}
