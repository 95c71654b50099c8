//! F: paths that lead elsewhere.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use atoll_engine::{ByteStream, Error, ErrorKind, Files, Limits};
use bytes::Bytes;
use futures_util::StreamExt as _;

use super::corpus;
use crate::{
    check::{Check, check, claim},
    ground::{PATIENCE, probe},
    stage::{Stage, Yard, usual},
    witness::content,
};

const NAIVE: &str = "a service that resolves paths on the host";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("F01", "odd_paths_lead_nowhere_else", odd_paths).against(NAIVE),
        check("F01", "a_path_that_is_none_is_invalid", no_paths)
            .no_control("an error's kind has no weaker form"),
        check("F03", "a_link_is_followed_inside_or_not_at_all", links).against(NAIVE),
        check("F03", "a_link_is_removed_and_replaced_itself", own_links).against(NAIVE),
        check("F05", "links_of_proc_do_not_lead_into_the_agent", magic).against(NAIVE),
        check("F09", "what_is_no_file_is_not_read", no_files).against(NAIVE),
        check("F09", "a_file_that_grows_or_is_replaced_ends", growing)
            .no_control("a reader without an end would never finish failing"),
        check("F11", "an_upload_that_fails_leaves_the_old_file", failed_upload).against(NAIVE),
        check("F11", "an_upload_without_end_stops_at_the_disks_limit", endless_upload)
            .against("no disk limit"),
    ]
}

pub(super) fn stream(content: &str) -> ByteStream {
    futures_util::stream::iter([Ok(Bytes::from(content.to_owned()))]).boxed()
}

/// Reads, writes, changes and removes by this path; what comes back must hold none of the host's
/// secrets. What each call answers is the guest's own affair.
async fn every_verb(stage: &Stage, files: &dyn Files, path: &str) -> Result<()> {
    let canary = &stage.canary;
    if let Ok(Ok(read)) = tokio::time::timeout(PATIENCE, content(files, path)).await {
        canary.absent_from(&format!("the file {path:?}"), &read)?;
    }
    if let Ok(listing) = files.list(path).await {
        canary.absent_from("a listing", format!("{listing:?}").as_bytes())?;
    }
    let _ = files.stat(path).await;
    if files.copy(path, "copied").await.is_ok() {
        let copied = content(files, "copied").await.unwrap_or_default();
        canary.absent_from(&format!("the copy of {path:?}"), &copied)?;
    }
    let _ = files.write(path, stream("written by a guest")).await;
    let _ = files.set_mode(path, 0o777).await;
    let _ = files.make_directory(&format!("{path}/made")).await;
    let _ = files.rename(path, "renamed").await;
    let _ = files.remove(path).await;
    canary.unchanged()
}

async fn odd_paths(stage: Arc<Stage>) -> Result<()> {
    let yard = stage.yard(stage.usual()).await?;
    for path in &corpus::odd(&stage.canary) {
        every_verb(&stage, yard.files(), path).await?;
    }
    Ok(())
}

async fn no_paths(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let files = ground.sandbox.files();
    for path in ["", "nul\0byte", "/\0"] {
        let answers = [
            ("read", files.read(path).await.map(|_| ()).err()),
            ("write", files.write(path, stream("x")).await.err()),
            ("list", files.list(path).await.map(|_| ()).err()),
            ("stat", files.stat(path).await.map(|_| ()).err()),
            ("make_directory", files.make_directory(path).await.err()),
            ("rename", files.rename(path, "x").await.err()),
            ("rename to", files.rename("x", path).await.err()),
            ("copy", files.copy(path, "x").await.err()),
            ("remove", files.remove(path).await.err()),
            ("set_mode", files.set_mode(path, 0o600).await.err()),
        ];
        for (verb, error) in answers {
            let kind = error.as_ref().map(Error::kind);
            // The other end of a rename is not there, which may be seen first.
            let right = kind == Some(ErrorKind::Invalid)
                || (verb == "rename to" && kind == Some(ErrorKind::NotFound));
            claim(right, || format!("{verb} {path:?}: {error:?}"))?;
        }
    }
    Ok(())
}

async fn links(stage: Arc<Stage>) -> Result<()> {
    let yard = stage.yard(stage.usual()).await?;
    for path in corpus::LINKS {
        // Each time anew: the calls before may have changed them.
        yard.shell(&corpus::make_links(&stage.canary)).await?;
        every_verb(&stage, yard.files(), path).await?;
    }
    Ok(())
}

/// A dangling link is made into what it names, inside; a link is removed, not its target.
async fn own_links(stage: Arc<Stage>) -> Result<()> {
    let yard = stage.yard(stage.usual()).await?;
    let canary = stage.canary.readable_path().display().to_string();
    yard.shell(&format!("echo kept > target; ln -s target link; ln -s {canary} out")).await?;
    let files = yard.files();

    files.remove("link").await?;
    let target = content(files, "target").await?;
    let through = files.write("out", stream("new")).await;

    claim(target == b"kept\n", || "the link's target was removed".to_owned())?;
    stage.canary.unchanged()?;
    if through.is_ok() {
        // Then it is the sandbox's own file now, one way or the other.
        let now = content(files, "out").await?;
        claim(now == b"new", || "what was written is not what is read".to_owned())?;
    }
    Ok(())
}

/// What the agent itself has open, is and was started with is not the guest's.
async fn magic(stage: Arc<Stage>) -> Result<()> {
    let yard = stage.yard(stage.usual()).await?;
    if let Yard::Naive(files, _) = &yard {
        // From its directory, the host's own /proc is a few steps up; the secret is a variable.
        let path = format!("{}proc/self/environ", "../".repeat(20));
        let read = content(files, &path).await?;
        return stage.canary.absent_from(&path, &read);
    }
    let files = yard.files();
    let mut paths: Vec<String> = (0..64).map(|number| format!("/proc/self/fd/{number}")).collect();
    paths.extend((0..8).map(|number| format!("/dev/fd/{number}")));
    paths.extend((0..16).map(|number| format!("/proc/1/fd/{number}")));
    for owner in ["self", "thread-self", "1", "self/task/1"] {
        for name in ["environ", "mem", "maps", "auxv", "stack", "exe", "cmdline", "map_files"] {
            paths.push(format!("/proc/{owner}/{name}"));
        }
        for name in ["root/etc/passwd", "cwd/etc/passwd", "root/proc/1/environ", "root/root"] {
            paths.push(format!("/proc/{owner}/{name}"));
        }
    }
    let mut told = Vec::new();
    for path in &paths {
        let read = tokio::time::timeout(PATIENCE, content(files, path)).await;
        claim(read.is_ok(), || format!("reading {path} does not end"))?;
        if let Ok(Ok(read)) = read {
            stage.canary.absent_from(path, &read)?;
            let inside = path.ends_with("/etc/passwd");
            if !read.is_empty() && !inside {
                told.push(format!("{path}: {} bytes", read.len()));
            }
        }
        for outcome in [files.write(path, stream("x")).await, files.set_mode(path, 0o777).await] {
            if outcome.is_ok() {
                told.push(format!("{path} was changed"));
            }
        }
    }
    claim(told.is_empty(), || format!("of the agent's own: {}", told.join(", ")))
}

async fn no_files(stage: Arc<Stage>) -> Result<()> {
    let yard = stage.yard(stage.usual()).await?;
    yard.shell("mkfifo pipe; mkdir directory; ln -s /dev/zero zero; ln -s pipe link").await?;
    let files = yard.files();
    let paths =
        ["pipe", "link", "directory", "zero", "/dev/zero", "/dev/urandom", "/dev/tty", "/dev/ptmx"];
    for path in paths {
        // A reader that opens the pipe as it is waits for ever; one look shows that.
        let wait = if stage.weak { Duration::from_secs(2) } else { PATIENCE };
        let mut read = files.read(path);
        let answer = tokio::time::timeout(wait, &mut read).await;
        while answer.is_err() {
            yard.release("pipe");
            let moment = Duration::from_millis(50);
            if !stage.weak || tokio::time::timeout(moment, &mut read).await.is_ok() {
                break;
            }
        }
        let answer = answer.map(|answer| answer.map(|_| "a stream"));
        let kind = answer.as_ref().map(|answer| answer.as_ref().map_err(Error::kind));
        let refused =
            matches!(kind, Ok(Err(ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Denied)));
        claim(refused, || format!("reading {path}: {answer:?}"))?;
    }
    let over = files.write("pipe", stream("x")).await;
    claim(over.is_err(), || "a pipe was written over".to_owned())?;
    // Files of the kernel say they are empty, and so they are.
    for path in ["/proc/version", "/proc/self/status", "/proc/kmsg"] {
        let read = tokio::time::timeout(PATIENCE, content(files, path)).await;
        claim(read.is_ok(), || format!("reading {path} does not end"))?;
    }
    Ok(())
}

async fn growing(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let line = "while :; do echo grow >> grows; cp grows other; mv other grows; \
                [ $(wc -c < grows) -gt 200000 ] && : > grows; done";
    let process = ground.sandbox.start(atoll_engine::Command::shell(line)).await?;
    let files = ground.sandbox.files();
    for _ in 0..50 {
        let read = tokio::time::timeout(PATIENCE, content(files, "grows")).await;
        let bounded = match &read {
            Ok(Ok(read)) => read.len() <= 8 << 20,
            Ok(Err(_)) => true,
            Err(_) => false,
        };
        claim(bounded, || "reading a file that changes does not end".to_owned())?;
    }
    ground.sandbox.kill(process).await?;
    ground.quiet().await
}

async fn failed_upload(stage: Arc<Stage>) -> Result<()> {
    let yard = stage.yard(stage.usual()).await?;
    yard.shell("mkdir place; echo old > place/file").await?;
    let files = yard.files();
    let broken = futures_util::stream::iter([
        Ok(Bytes::from_static(b"half of it")),
        Err(Error::internal("the client went away")),
    ]);

    let answer = files.write("place/file", broken.boxed()).await;

    claim(answer.is_err(), || "an upload without an end was taken".to_owned())?;
    let now = content(files, "place/file").await?;
    claim(now == b"old\n", || format!("the file is now {:?}", String::from_utf8_lossy(&now)))?;
    only(files, "place", &["file"]).await
}

async fn only(files: &dyn Files, directory: &str, names: &[&str]) -> Result<()> {
    let mut found = Vec::new();
    let clean = crate::run::eventually(|| async {
        let listing = files.list(directory).await?;
        Ok(listing.entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>() == names)
    })
    .await?;
    if !clean {
        found = files.list(directory).await?.entries;
    }
    claim(clean, || format!("left behind: {found:?}"))
}

async fn endless_upload(stage: Arc<Stage>) -> Result<()> {
    let base = Limits { memory: None, ..usual() };
    let limits = stage.limits(base, Limits { disk: None, ..base });
    let ground = stage.sandbox(stage.spec(limits)).await?;
    ground.shell("mkdir place; echo old > place/file").await?;
    let files = ground.sandbox.files();
    // Four times what there is room for; in the control there is room.
    let block = Bytes::from(vec![b'x'; 64 << 10]);
    let endless = futures_util::stream::iter((0..1024).map(move |_| Ok(block.clone())));

    let answer = files.write("place/file", endless.boxed()).await;

    let kind = answer.as_ref().map_err(Error::kind);
    claim(kind == Err(ErrorKind::Exhausted), || format!("the upload's answer: {answer:?}"))?;
    let now = content(files, "place/file").await.context("the old file")?;
    claim(now == b"old\n", || "the old file is gone".to_owned())?;
    only(files, "place", &["file"]).await?;
    let ran = ground.run(probe(&["fill", "place/other", "4"])).await?;
    claim(ran.outcome.succeeded(), || ran.told())
}
