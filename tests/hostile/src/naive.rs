//! Services as they should not be: one resolves a guest's paths on the host, one trusts its clients
//! to go on reading.
//!
//! What checks are run against to see that they can fail.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use atoll_engine::{
    ByteStream, Changes, Edit, Edited, Entry, Error, ErrorKind, Event, Files, Glob, Grep, Listing,
    Matches, Offsets, ProcessId, Result, Sandbox,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};
use tokio_util::sync::CancellationToken;

/// Files under a directory of the host, if one asks nicely.
#[derive(Debug)]
pub struct NaiveFiles {
    pub root: PathBuf,
}

impl NaiveFiles {
    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

#[async_trait]
impl Files for NaiveFiles {
    async fn read(&self, path: &str) -> Result<ByteStream> {
        let path = self.at(path);
        let content = blocking(move || {
            use io::Read as _;
            let mut content = Vec::new();
            fs::File::open(path)?.take(1 << 20).read_to_end(&mut content)?;
            Ok(content)
        })
        .await?;
        Ok(futures_util::stream::iter([Ok(Bytes::from(content))]).boxed())
    }

    async fn write(&self, path: &str, mut content: ByteStream) -> Result<()> {
        let mut file = fs::File::create(self.at(path)).map_err(|error| wrong(&error))?;
        while let Some(chunk) = content.next().await {
            io::Write::write_all(&mut file, &chunk?).map_err(|error| wrong(&error))?;
        }
        Ok(())
    }

    async fn list(&self, _: &str) -> Result<Listing> {
        Err(Error::unsupported("no check needs it"))
    }

    async fn stat(&self, _: &str) -> Result<Entry> {
        Err(Error::unsupported("no check needs it"))
    }

    async fn make_directory(&self, path: &str) -> Result<()> {
        fs::create_dir_all(self.at(path)).map_err(|error| wrong(&error))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        fs::rename(self.at(from), self.at(to)).map_err(|error| wrong(&error))
    }

    async fn copy(&self, from: &str, to: &str) -> Result<()> {
        fs::copy(self.at(from), self.at(to)).map(|_| ()).map_err(|error| wrong(&error))
    }

    async fn remove(&self, path: &str) -> Result<()> {
        fs::remove_file(self.at(path)).map_err(|error| wrong(&error))
    }

    async fn set_mode(&self, path: &str, mode: u32) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode))
            .map_err(|error| wrong(&error))
    }

    async fn pack(&self, _: &str) -> Result<ByteStream> {
        Err(Error::unsupported("no check needs it"))
    }

    async fn unpack(&self, _: &str, _: ByteStream) -> Result<()> {
        Err(Error::unsupported("no check needs it"))
    }

    async fn watch(&self, _: &str, _: bool) -> Result<Changes> {
        Err(Error::unsupported("no check needs it"))
    }

    async fn glob(&self, _: &Glob) -> Result<Listing> {
        Err(Error::unsupported("no check needs it"))
    }

    async fn grep(&self, _: &Grep) -> Result<Matches> {
        Err(Error::unsupported("no check needs it"))
    }

    async fn edit(&self, _: &str, _: &[Edit]) -> Result<Edited> {
        Err(Error::unsupported("no check needs it"))
    }
}

async fn blocking<T: Send + 'static>(
    body: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(body).await;
    done.map_err(|error| Error::internal(error.to_string()))?.map_err(|error| wrong(&error))
}

fn wrong(error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::Denied,
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, error.to_string())
}

/// Tells every client what a process writes: as much as there is, at once, whether or not the
/// client takes it or is there at all.
#[derive(Debug)]
pub struct NaiveServer;

impl NaiveServer {
    /// Listens until `closing`.
    pub fn listen(
        socket: &Path,
        sandbox: Arc<dyn Sandbox>,
        closing: CancellationToken,
    ) -> io::Result<()> {
        let listener = UnixListener::bind(socket)?;
        tokio::spawn(closing.run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(tell(stream, Arc::clone(&sandbox)));
            }
        }));
        Ok(())
    }
}

/// One client: the process's number is in the only line that is read of its request.
async fn tell(mut stream: UnixStream, sandbox: Arc<dyn Sandbox>) -> Option<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        (stream.read_buf(&mut head).await.ok()? > 0).then_some(())?;
    }
    let head = String::from_utf8(head).ok()?;
    let process = head.split("/processes/").nth(1)?.split('/').next()?.parse().ok()?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    let (all, mut waiting) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut events = sandbox.attach(ProcessId(process), Offsets::default()).await.ok()?;
        while let Some(Ok(event)) = events.next().await {
            if let Event::Output { data, .. } = event {
                // Whether anybody is left to read it is not asked.
                let _ = all.send(data);
            }
        }
        Some(())
    });
    while let Some(data) = waiting.recv().await {
        stream.write_all(&data).await.ok()?;
    }
    Some(())
}
