//! A sandbox's directory on the host: what its agent is told, and where it listens.
//!
//! ```text
//! state/            0700: nobody else's
//!   .agent-…        the agent's program, shown read-only in every sandbox
//!   <id>/boot       what the agent is told, shown read-only
//!   <id>/run/       shown writable, to the agent alone; its socket is here
//! ```
//!
//! The agent may not be the server's user, so modes are wide below the state directory, and narrow
//! above it; inside, the directory above `run` is the agent's own. What the agent puts into `run`
//! is not trusted: nothing there is resolved through a link.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use atoll_agent_client::agent_bytes;
use atoll_agent_protocol::message::{BOOT_FILE, Boot};
use atoll_engine::SandboxId;
use prost::Message as _;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use tokio::net::UnixStream;

use crate::image::fnv;

const PASSWD: &str = "\
root:x:0:0:root:/root:/usr/sbin/nologin
user:x:1000:1000:user:/home/user:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
";

const GROUP: &str = "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n";

/// One sandbox's directory, whether or not it is there.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    state: PathBuf,
    directory: PathBuf,
}

impl Place {
    pub(crate) fn new(state: &Path, id: &SandboxId) -> Self {
        Self { state: state.to_owned(), directory: state.join(id.as_str()) }
    }

    /// Makes the directory, which takes the id.
    pub(crate) fn take(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.state)?;
        DirBuilder::new().mode(0o700).create(&self.directory)
    }

    /// Puts in what the container is shown.
    pub(crate) fn furnish(&self, boot: &Boot) -> io::Result<()> {
        self.install_agent()?;
        for (name, content) in
            [(BOOT_FILE, boot.encode_to_vec()), ("passwd", PASSWD.into()), ("group", GROUP.into())]
        {
            fs::write(self.file(name), content)?;
            fs::set_permissions(self.file(name), Permissions::from_mode(0o444))?;
        }
        fs::create_dir(self.run())?;
        fs::set_permissions(self.run(), Permissions::from_mode(0o777))
    }

    fn install_agent(&self) -> io::Result<()> {
        let path = self.agent();
        if path.exists() {
            return Ok(());
        }
        let new = self.file("agent");
        fs::write(&new, agent_bytes())?;
        fs::set_permissions(&new, Permissions::from_mode(0o555))?;
        fs::rename(new, path)
    }

    /// The agent's program, one for all sandboxes of this build.
    pub(crate) fn agent(&self) -> PathBuf {
        static HASH: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| fnv(agent_bytes()));
        self.state.join(format!(".agent-{:016x}", *HASH))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn run(&self) -> PathBuf {
        self.file("run")
    }

    /// Connects to the agent.
    pub(crate) async fn connect(&self) -> io::Result<UnixStream> {
        let socket = self.socket()?;
        UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd())).await
    }

    /// The agent's socket itself: a link of its name is not followed.
    fn socket(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let run = openat(CWD, self.run(), flags | OFlags::DIRECTORY, Mode::empty())?;
        let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
        let socket = openat2(&run, "socket", flags, Mode::empty(), how)?;
        match FileType::from_raw_mode(fstat(&socket)?.st_mode) {
            FileType::Socket => Ok(socket),
            _ => Err(io::Error::other("the agent's socket is none")),
        }
    }

    /// Removes the directory. Follows no link in it.
    pub(crate) fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    fn place() -> (tempfile::TempDir, Place) {
        let state = tempfile::tempdir().unwrap();
        let place = Place::new(state.path(), &"sbx".parse().unwrap());
        place.take().unwrap();
        place.furnish(&Boot::default()).unwrap();
        (state, place)
    }

    #[test]
    fn an_id_is_taken_once() {
        let (_state, place) = place();

        assert_eq!(place.take().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        place.clear().unwrap();
        place.clear().unwrap();
        place.take().unwrap();
    }

    #[test]
    fn a_socket_is_found_and_a_link_to_one_is_not() {
        let (state, place) = place();
        let elsewhere = state.path().join("elsewhere");
        let _listener = UnixListener::bind(&elsewhere).unwrap();

        symlink(&elsewhere, place.run().join("socket")).unwrap();
        assert!(place.socket().is_err());
        fs::remove_file(place.run().join("socket")).unwrap();
        fs::write(place.run().join("socket"), "").unwrap();
        assert!(place.socket().is_err());
        fs::remove_file(place.run().join("socket")).unwrap();
        let _listener = UnixListener::bind(place.run().join("socket")).unwrap();
        assert!(place.socket().is_ok());
    }
}
