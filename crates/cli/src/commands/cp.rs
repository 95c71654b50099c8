//! `atoll cp`: files and directories into a session and out of it.

use std::{
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use atoll_client::Client;
use atoll_types::{file::Kind, id::SessionId};
use bytes::Bytes;
use clap::Args;
use futures_util::{Stream, StreamExt as _};
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
};
use tokio_util::io::ReaderStream;

use crate::{
    arguments::Place,
    copy,
    failure::{Doing as _, Failure, Result},
    invocation::Invocation,
    part::Destination,
    progress::Progress,
    signal::{End, Stop},
    words,
};

/// Copy files and directories into a session or out of it
#[derive(Debug, Args)]
#[command(
    after_help = "One of the two is SESSION:PATH, with PATH relative to the session's home directory; the other
is a file of this machine, or `-` for standard input or output. A new file gets the permissions of
the one it is a copy of; one of this machine that was there keeps its own.

With -r a directory goes into a directory that is there, under its own name, or becomes the one that
is not; DIR/. is what DIR holds. Links are copied as links, never followed or written through; `-`
is a tar archive then. A new directory of this machine is there when it is whole; what was added to
an old one stays when the copy is stopped. Exit code 1: something with content could not be copied.

Examples:
  atoll cp data.csv SESSION:
  atoll cp SESSION:results/plot.png .
  atoll cp -r src SESSION:
  atoll cp -r SESSION:results/. results
  tar c src | atoll cp - SESSION:src.tar
  atoll cp SESSION:log.txt - | less"
)]
pub(crate) struct Arguments {
    /// Directories, with all they hold
    #[arg(long, short)]
    recursive: bool,
    #[arg(value_name = "FROM")]
    from: Place,
    #[arg(value_name = "TO")]
    to: Place,
}

pub(crate) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<End> {
    let mut stop = Stop::new()?;
    let copy = copy(arguments, invocation);
    tokio::select! {
        copied = copy => copied.map(End::Code),
        // What was half written goes with the dropped future.
        asked = stop.asked() => Ok(End::Asked(asked)),
    }
}

async fn copy(arguments: Arguments, invocation: &Invocation) -> Result<u8> {
    if arguments.recursive {
        return tree(arguments.from, arguments.to, invocation).await;
    }
    file(arguments.from, arguments.to, invocation).await.map(|()| 0)
}

/// A directory, or a file as if -r had not been said.
async fn tree(from: Place, to: Place, invocation: &Invocation) -> Result<u8> {
    let client = invocation.client().await?;
    match (&from, &to) {
        (Place::Host(source), Place::Session(session, path)) if source.is_dir() => {
            return copy::upload(&client, source, session, path, invocation).await;
        }
        (Place::Stream, Place::Session(session, path)) => {
            return copy::from_stream(&client, session, path, invocation).await;
        }
        (Place::Session(session, path), _) if copy::is_tree(&client, session, path).await? => {
            match &to {
                Place::Host(target) => {
                    return copy::download(&client, session, path, target, invocation).await;
                }
                Place::Stream => return copy::to_stream(&client, session, path, invocation).await,
                Place::Session(other, to) => {
                    let ends = ((session, path.as_str()), (other, to.as_str()));
                    return copy::relay(&client, ends.0, ends.1, invocation).await;
                }
            }
        }
        _ => {}
    }
    file(from, to, invocation).await.map(|()| 0)
}

async fn file(from: Place, to: Place, invocation: &Invocation) -> Result {
    match (from, to) {
        (Place::Session(session, path), to @ (Place::Host(_) | Place::Stream)) => {
            let client = invocation.client().await?;
            out(&client, &session, &path, to, invocation).await
        }
        (from @ (Place::Host(_) | Place::Stream), Place::Session(session, path)) => {
            let client = invocation.client().await?;
            into(&client, from, &session, &path, invocation).await
        }
        (Place::Session(one, from), Place::Session(other, to)) => {
            let client = invocation.client().await?;
            across(&client, (&one, &from), (&other, &to), invocation).await
        }
        _ => {
            Err(Failure::usage("neither is in a session").hint("write one of them as SESSION:PATH"))
        }
    }
}

async fn into(
    client: &Client,
    from: Place,
    session: &SessionId,
    path: &str,
    invocation: &Invocation,
) -> Result {
    let Place::Host(source) = from else {
        if path.is_empty() || path.ends_with('/') {
            return Err(Failure::usage("what comes from standard input has no name")
                .hint("name the file: SESSION:name"));
        }
        let progress = Progress::new(invocation.printer, path, None);
        let content = counted(tokio::io::stdin(), progress);
        return Ok(client.write_file(session, path, content).await?);
    };
    let shown = source.display().to_string();
    let file = File::open(&source).await.doing(|| format!("cannot read {shown}"))?;
    let about = file.metadata().await.doing(|| format!("cannot read {shown}"))?;
    if about.is_dir() {
        return Err(directory(&shown));
    }
    let path = inside(client, session, path, name(&source)?).await?;
    let size = about.is_file().then_some(about.len());
    let progress = Progress::new(invocation.printer, &shown, size);
    client.write_file(session, &path, counted(file, progress)).await?;
    if about.is_file() {
        client.set_file_mode(session, &path, about.mode() & 0o777).await?;
    }
    Ok(())
}

/// Where in the session a file of that name goes: into a directory, or to the path itself.
async fn inside(client: &Client, session: &SessionId, path: &str, name: &str) -> Result<String> {
    if path.is_empty() {
        return Ok(name.to_owned());
    }
    if path.ends_with('/') {
        return Ok(format!("{path}{name}"));
    }
    match client.stat_file(session, path).await {
        Ok(entry) if entry.kind == Kind::Directory => Ok(format!("{path}/{name}")),
        Ok(_) => Ok(path.to_owned()),
        // If it is the session that is missing, writing will say so.
        Err(error) if error.code() == Some("not_found") => Ok(path.to_owned()),
        Err(error) => Err(error.into()),
    }
}

async fn out(
    client: &Client,
    session: &SessionId,
    path: &str,
    to: Place,
    invocation: &Invocation,
) -> Result {
    let entry = client.stat_file(session, path).await?;
    if entry.kind == Kind::Directory {
        return Err(directory(path));
    }
    // The size and mode a link has are not those of what it points to.
    let (size, mode) = match entry.kind {
        Kind::File => (Some(entry.size), Some(entry.mode)),
        _ => (None, None),
    };
    let content = client.read_file(session, path).await?;
    let progress = Progress::new(invocation.printer, path, size);
    let Place::Host(target) = to else {
        return pump(content, tokio::io::stdout(), progress).await;
    };
    let target = if target.is_dir() {
        let target = target.join(last(path)?);
        copy::refuse_link(&target)?;
        target
    } else {
        target
    };
    let opening = tokio::task::spawn_blocking(move || Destination::of(&target, mode));
    let destination = opening.await.doing(|| "cannot write".into())??;
    let file = File::from_std(destination.file()?);
    pump(content, file, progress).await?;
    destination.finish()
}

/// From one session to another, by way of here.
async fn across(
    client: &Client,
    (one, from): (&SessionId, &str),
    (other, to): (&SessionId, &str),
    invocation: &Invocation,
) -> Result {
    let entry = client.stat_file(one, from).await?;
    if entry.kind == Kind::Directory {
        return Err(directory(from));
    }
    let content = client.read_file(one, from).await?;
    let name = last(from)?.display().to_string();
    let to = inside(client, other, to, &name).await?;
    let progress = Progress::new(invocation.printer, from, Some(entry.size));
    let content = content.map(move |data| {
        progress.add(data.as_ref().map_or(0, Bytes::len));
        data.map_err(io::Error::other)
    });
    client.write_file(other, &to, content).await?;
    if entry.kind == Kind::File {
        client.set_file_mode(other, &to, entry.mode).await?;
    }
    Ok(())
}

async fn pump(
    mut content: atoll_client::Download,
    mut to: impl AsyncWrite + Unpin,
    progress: Progress,
) -> Result {
    while let Some(data) = content.next().await {
        let data = data?;
        to.write_all(&data).await.doing(|| "cannot write".into())?;
        progress.add(data.len());
    }
    to.flush().await.doing(|| "cannot write".into())
}

fn counted(
    from: impl AsyncRead + Send + 'static,
    progress: Progress,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    ReaderStream::with_capacity(from, 64 << 10)
        .inspect(move |data| progress.add(data.as_ref().map_or(0, Bytes::len)))
}

fn directory(shown: &str) -> Failure {
    let shown = words::printable(shown);
    Failure::new(format!("{shown} is a directory")).hint("copy directories with -r")
}

fn name(path: &Path) -> Result<&str> {
    path.file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Failure::usage(format!("{} has no name to keep", path.display())))
}

/// The last part of a guest's path, which must not lead anywhere else on this machine.
fn last(path: &str) -> Result<PathBuf> {
    match path.trim_end_matches('/').rsplit('/').next() {
        Some(name) if !matches!(name, "" | "." | "..") => Ok(name.into()),
        _ => Err(Failure::usage(format!("`{path}` has no name to keep"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_last_name() {
        assert_eq!(last("a/b.txt").unwrap(), Path::new("b.txt"));
        assert_eq!(last("b.txt").unwrap(), Path::new("b.txt"));
    }

    #[test]
    fn a_guests_path_cannot_name_another_place_here() {
        for path in ["", "..", "a/..", "/", "a/."] {
            assert!(last(path).is_err(), "{path}");
        }
    }
}
