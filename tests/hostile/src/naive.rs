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
    ByteStream, Change, Changes, Edit, Edited, Entry, Error, ErrorKind, Event, Files, Glob, Grep,
    Listing, Matches, Offsets, ProcessId, Result, Sandbox,
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

    async fn pack(&self, path: &str) -> Result<ByteStream> {
        let mut archive = Vec::new();
        self.each(path, |path, content| {
            archive.extend_from_slice(path.as_bytes());
            archive.extend_from_slice(content);
        });
        Ok(futures_util::stream::iter([Ok(Bytes::from(archive))]).boxed())
    }

    /// Names, kinds and targets as the archive has them.
    async fn unpack(&self, path: &str, mut archive: ByteStream) -> Result<()> {
        let mut bytes = Vec::new();
        while let Some(piece) = archive.next().await {
            bytes.extend_from_slice(&piece?);
        }
        let mut rest = bytes.as_slice();
        while let Some((header, content)) = rest.split_at_checked(512) {
            let text = |from: usize, to: usize| {
                let field = header[from..to].split(|byte| *byte == 0).next().unwrap_or_default();
                String::from_utf8_lossy(field).into_owned()
            };
            let size = usize::from_str_radix(text(124, 136).trim(), 8).unwrap_or(0);
            let place = self.at(path).join(text(0, 100));
            let unpacked = match header[156] {
                b'0' => fs::write(place, &content[..size.min(content.len())]),
                b'1' => fs::hard_link(text(157, 257), place),
                b'2' => std::os::unix::fs::symlink(text(157, 257), place),
                _ => return Ok(()),
            };
            unpacked.map_err(|error| wrong(&error))?;
            rest = content.get(size.next_multiple_of(512)..).unwrap_or_default();
        }
        Ok(())
    }

    /// Looks when it is asked, and then tells all there is.
    async fn watch(&self, path: &str, _: bool) -> Result<Changes> {
        let place = self.at(path);
        let all = futures_util::stream::once(async move {
            let entries = fs::read_dir(&place).into_iter().flatten().flatten();
            // Files only: directories were there before.
            let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
            let mut paths: Vec<String> =
                files.map(|entry| entry.path().display().to_string()).collect();
            // What was made last is told last.
            paths.sort_by_key(|path| path.ends_with("/mark"));
            let told = paths.into_iter();
            let told = told.map(|path| Ok(Change::Created { path, directory: false }));
            futures_util::stream::iter(told.collect::<Vec<_>>())
        });
        Ok(all.flatten().chain(futures_util::stream::pending()).boxed())
    }

    async fn glob(&self, glob: &Glob) -> Result<Listing> {
        let mut found = Vec::new();
        let place = glob.path.as_deref().unwrap_or_else(|| glob.pattern.trim_end_matches("/*"));
        self.each(place, |path, _| found.push(path.to_owned()));
        Err(Error::invalid(format!("found: {found:?}")))
    }

    async fn grep(&self, grep: &Grep) -> Result<Matches> {
        let mut found = Vec::new();
        self.each(grep.path.as_deref().unwrap_or("."), |_, content| {
            found.push(String::from_utf8_lossy(content).into_owned());
        });
        Err(Error::invalid(format!("found: {found:?}")))
    }

    async fn edit(&self, path: &str, edits: &[Edit]) -> Result<Edited> {
        let path = self.at(path);
        let mut text = fs::read_to_string(&path).map_err(|error| wrong(&error))?;
        for edit in edits {
            text = text.replace(&edit.old, &edit.new);
        }
        fs::write(&path, text).map_err(|error| wrong(&error))?;
        Ok(Edited::default())
    }
}

impl NaiveFiles {
    /// Every file at a path or directly below it, links followed.
    fn each(&self, path: &str, mut what: impl FnMut(&str, &[u8])) {
        use io::Read as _;
        let place = self.at(path);
        let below = fs::read_dir(&place).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in std::iter::once(place.clone()).chain(below) {
            let mut content = Vec::new();
            if fs::metadata(&path).is_ok_and(|found| found.is_file())
                && let Ok(file) = fs::File::open(&path)
            {
                file.take(1 << 20).read_to_end(&mut content).ok();
            }
            what(&path.display().to_string(), &content);
        }
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
    if let Some((_, rest)) = head.split_once("/ports/") {
        return pass_on(stream, &head, rest.split('/').next()?.parse().ok()?).await;
    }
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

/// Whatever port is asked for, on whichever loopback this program has, with all that was said.
async fn pass_on(mut stream: UnixStream, head: &str, port: u16) -> Option<()> {
    let mut program = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    program.write_all(head.as_bytes()).await.ok()?;
    tokio::io::copy_bidirectional(&mut stream, &mut program).await.ok()?;
    Some(())
}
