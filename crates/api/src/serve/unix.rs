//! The private socket: a file only its owner can open, and callers the kernel vouches for.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

use crate::peer::Peer;

/// A listening socket file, removed when this is dropped.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Whose file it is, so that no successor's is removed.
    inode: u64,
}

impl UnixSocket {
    /// Listens at `path`, in place of whatever socket is there.
    ///
    /// The file is private before anyone can find it. That no other server uses the path is the
    /// caller's to know.
    pub fn bind(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let mut early = path.clone().into_os_string();
        early.push(format!(".{}", std::process::id()));
        let early = PathBuf::from(early);
        remove(&early)?;
        let listener = UnixListener::bind(&early)?;
        let ready = fs::set_permissions(&early, Permissions::from_mode(0o600))
            .and_then(|()| fs::symlink_metadata(&early))
            .and_then(|found| fs::rename(&early, &path).map(|()| found.ino()));
        match ready {
            Ok(inode) => Ok(Self { listener, path, inode }),
            Err(error) => {
                remove(&early)?;
                Err(error)
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

/// Who is at the other end, if it is the server's own user or root.
pub(super) fn judge(stream: &UnixStream) -> io::Result<Peer> {
    let uid = stream.peer_cred()?.uid();
    let own = rustix::process::geteuid().as_raw();
    if uid == own || uid == 0 {
        return Ok(Peer::Operator { uid });
    }
    tracing::warn!(uid, "another user tried the private socket");
    Err(io::ErrorKind::PermissionDenied.into())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
