//! Writing files: in one step, or not at all.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::sync::oneshot;

use super::{
    Stage,
    case::{CaseResult, broken, cases, check, fails, same},
    files::{content, put, read},
    scratch::Scratch,
};
use crate::{ByteStream, Error, ErrorKind};

cases![
    directories_are_made_on_the_way,
    new_content_replaces_old_in_one_step,
    an_upload_that_fails_leaves_the_old_file,
    an_upload_that_is_dropped_leaves_the_old_file,
    an_upload_that_fails_leaves_no_new_file,
    a_new_file_is_readable_by_all,
    an_existing_file_keeps_its_mode,
    a_link_is_written_through,
    only_regular_files_are_overwritten,
    a_path_below_a_file_is_invalid,
    a_large_file_is_written_as_it_comes,
];

/// Sends `first`, says so, and goes on when told to: with `rest`, or for ever not.
fn halting(
    first: &'static str,
    rest: &'static str,
) -> (ByteStream, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let (reached, is_reached) = oneshot::channel();
    let (proceed, may_proceed) = oneshot::channel::<()>();
    let head = stream::iter([Ok(Bytes::from_static(first.as_bytes()))]);
    let tail = stream::once(async move {
        // Asked for only when the first piece is on its way.
        let _ = reached.send(());
        if may_proceed.await.is_err() {
            std::future::pending::<()>().await;
        }
        Ok(Bytes::from_static(rest.as_bytes()))
    });
    (head.chain(tail).boxed(), is_reached, proceed)
}

async fn directories_are_made_on_the_way(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    put(&scratch, "a/b/c/file", "x").await?;

    same("content", scratch.text("cat a/b/c/file").await?, "x".into())
}

async fn new_content_replaces_old_in_one_step(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "file", "old content").await?;
    let (content, halfway, proceed) = halting("new ", "content");

    let writing = scratch.files().write("file", content);
    let meanwhile = async {
        check(halfway.await.is_ok(), || "the content was not asked for".into())?;
        let seen = read(&scratch, "file").await?;
        let inside = scratch.text("cat file").await?;
        let _ = proceed.send(());
        same(
            "halfway",
            (String::from_utf8_lossy(&seen).into_owned(), inside),
            ("old content".into(), "old content".into()),
        )
    };
    let (written, seen) = tokio::join!(writing, meanwhile);

    written?;
    seen?;
    same("after", scratch.text("cat file; ls -A").await?, "new contentfile\n".into())
}

async fn an_upload_that_fails_leaves_the_old_file(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "file", "old").await?;
    let pieces = vec![Ok(Bytes::from(vec![0; 200_000])), Err(Error::invalid("the client left"))];

    let written = scratch.files().write("file", stream::iter(pieces).boxed()).await;

    check(written.is_err(), || "half a file was taken for a whole one".into())?;
    scratch.until("[ \"$(ls -A)\" = file ]").await?;
    same("content", scratch.text("cat file").await?, "old".into())
}

async fn an_upload_that_is_dropped_leaves_the_old_file(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "file", "old").await?;
    let (content, halfway, proceed) = halting("new", "");

    tokio::select! {
        written = scratch.files().write("file", content) => {
            return broken(format!("it did not wait for its content: {written:?}"));
        }
        _ = halfway => {}
    }
    drop(proceed);

    scratch.until("[ \"$(ls -A)\" = file ]").await?;
    same("content", scratch.text("cat file").await?, "old".into())
}

async fn an_upload_that_fails_leaves_no_new_file(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d").await?;
    let pieces = vec![Ok(Bytes::from_static(b"half")), Err(Error::invalid("the client left"))];

    let written = scratch.files().write("d/file", stream::iter(pieces).boxed()).await;

    check(written.is_err(), || "half a file was taken for a whole one".into())?;
    scratch.until("[ -z \"$(ls -A d)\" ]").await
}

async fn a_new_file_is_readable_by_all(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    put(&scratch, "file", "x").await?;

    same("mode", scratch.text("stat -c %a file").await?, "644\n".into())
}

async fn an_existing_file_keeps_its_mode(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo old > tool; chmod 750 tool; echo old > private; chmod 600 private").await?;

    put(&scratch, "tool", "new").await?;
    put(&scratch, "private", "new").await?;

    same("modes", scratch.text("stat -c %a tool private").await?, "750\n600\n".into())?;
    same("content", scratch.text("cat tool private").await?, "newnew".into())
}

async fn a_link_is_written_through(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d; echo old > d/real; ln -s d/real link").await?;

    put(&scratch, "link", "new").await?;

    same(
        "target",
        scratch.text("cat d/real; readlink link; ls -A d").await?,
        "newd/real\nreal\n".into(),
    )
}

async fn only_regular_files_are_overwritten(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir empty full; echo x > full/file; mkfifo pipe; ln -s pipe to-pipe").await?;

    for path in ["empty", "full", "pipe", "to-pipe"] {
        fails(path, ErrorKind::Invalid, scratch.files().write(path, content("x")).await)?;
    }
    let line = "[ -d empty ] && [ -d full ] && [ -p pipe ] && ls -A";
    same("left alone", scratch.text(line).await?, "empty\nfull\npipe\nto-pipe\n".into())
}

async fn a_path_below_a_file_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "file", "x").await?;

    let written = scratch.files().write("file/below", content("y")).await;

    fails("write", ErrorKind::Invalid, written)?;
    same("content", scratch.text("cat file").await?, "x".into())
}

async fn a_large_file_is_written_as_it_comes(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let piece = Bytes::from((0..16_384u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    let count = 512;

    let pieces = stream::iter((0..count).map({
        let piece = piece.clone();
        move |_| Ok(piece.clone())
    }));
    scratch.files().write("big", pieces.boxed()).await?;

    put(&scratch, "piece", piece.clone()).await?;
    let line =
        format!("seq {count} | while read n; do cat piece; done | cmp - big && stat -c %s big");
    same("size", scratch.text(&line).await?, format!("{}\n", piece.len() * count))
}
