//! The files of a sandbox, as its own user sees them.

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{
    Failure, Stage,
    case::{CaseResult, broken, cases, check, fails, same},
    scratch::{Scratch, text},
};
use crate::{ByteStream, Entry, ErrorKind, Kind, Result};

cases![
    what_is_written_is_read,
    a_guest_sees_what_is_written,
    files_belong_to_the_guest,
    relative_paths_begin_at_home,
    a_path_without_meaning_is_invalid,
    a_missing_file_is_not_found,
    what_the_guest_may_not_reach_is_denied,
    links_are_followed_as_the_guest_would,
    only_regular_files_are_read,
    reading_ends_where_the_file_did,
    a_file_of_any_size_is_read,
    a_directory_is_listed_by_name,
    a_long_listing_is_whole_or_says_it_is_not,
    listing_a_file_is_invalid,
    a_path_is_told_as_what_it_is,
    directories_are_made_with_those_they_need,
    renaming_moves_and_replaces,
    renaming_moves_directories,
    copying_copies_content_and_mode,
    copying_what_is_no_file_is_invalid,
    removing_a_link_leaves_its_target,
    removing_a_directory_removes_all_it_holds,
    removing_a_deep_tree_works,
    removing_does_not_follow_links_out_of_the_tree,
    modes_are_set,
    a_mode_out_of_range_is_invalid,
];

/// Content in pieces, as a client sends it.
pub(super) fn content(bytes: impl Into<Bytes>) -> ByteStream {
    let bytes = bytes.into();
    let pieces: Vec<_> = (0..bytes.len().div_ceil(50_000))
        .map(|piece| bytes.slice(piece * 50_000..bytes.len().min((piece + 1) * 50_000)))
        .map(Ok)
        .collect();
    stream::iter(pieces).boxed()
}

pub(super) async fn put(
    scratch: &Scratch,
    path: &str,
    bytes: impl Into<Bytes>,
) -> Result<(), Failure> {
    Ok(scratch.files().write(path, content(bytes)).await?)
}

/// A whole file.
pub(super) async fn read(scratch: &Scratch, path: &str) -> Result<Vec<u8>> {
    let pieces: Vec<Bytes> = scratch.files().read(path).await?.try_collect().await?;
    Ok(pieces.concat())
}

fn names(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

async fn what_is_written_is_read(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let large: Vec<u8> = (0..400_000u32).flat_map(u32::to_le_bytes).collect();

    for (path, bytes) in [("empty", vec![]), ("small", b"a\0\xff\n".to_vec()), ("large", large)] {
        put(&scratch, path, bytes.clone()).await?;
        let seen = read(&scratch, path).await?;
        check(seen == bytes, || format!("`{path}` changed: {} bytes", seen.len()))?;
    }
    Ok(())
}

async fn a_guest_sees_what_is_written(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "from host", "hello").await?;

    same(
        "seen inside",
        scratch.text("cat 'from host'; printf back > answer").await?,
        "hello".into(),
    )?;

    same("seen outside", read(&scratch, "answer").await?, b"back".to_vec())
}

async fn files_belong_to_the_guest(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    put(&scratch, "made/of/it", "x").await?;

    let line = "for path in . made made/of made/of/it; do stat -c %u:%g $path; done | sort -u";
    same("owner", scratch.text(line).await?, scratch.text("echo $(id -u):$(id -g)").await?)?;
    scratch.text("echo more >> made/of/it && rm -r made").await?;
    Ok(())
}

async fn relative_paths_begin_at_home(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let home = scratch.text("cd; pwd -P").await?;
    let home = home.trim_end();

    put(&scratch, "note", "x").await?;
    put(&scratch, &format!("{home}/other"), "y").await?;

    same("absolute", read(&scratch, &format!("{home}/note")).await?, b"x".to_vec())?;
    same("relative", read(&scratch, "./other").await?, b"y".to_vec())?;
    same("told", scratch.files().stat("note").await?.path, format!("{home}/note"))
}

async fn a_path_without_meaning_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "good", "x").await?;

    for path in ["", "a\0b"] {
        let files = scratch.files();
        fails("read", ErrorKind::Invalid, files.read(path).await)?;
        fails("write", ErrorKind::Invalid, files.write(path, content("x")).await)?;
        fails("list", ErrorKind::Invalid, files.list(path).await)?;
        fails("stat", ErrorKind::Invalid, files.stat(path).await)?;
        fails("mkdir", ErrorKind::Invalid, files.make_directory(path).await)?;
        fails("rename from", ErrorKind::Invalid, files.rename(path, "x").await)?;
        fails("rename to", ErrorKind::Invalid, files.rename("good", path).await)?;
        fails("copy from", ErrorKind::Invalid, files.copy(path, "x").await)?;
        fails("copy to", ErrorKind::Invalid, files.copy("good", path).await)?;
        fails("remove", ErrorKind::Invalid, files.remove(path).await)?;
        fails("chmod", ErrorKind::Invalid, files.set_mode(path, 0o600).await)?;
    }
    same("still there", scratch.text("ls -A").await?, "good\n".into())
}

async fn a_missing_file_is_not_found(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let files = scratch.files();

    for path in ["missing", "missing/deeper", "/no/such/place"] {
        fails("read", ErrorKind::NotFound, files.read(path).await)?;
        fails("list", ErrorKind::NotFound, files.list(path).await)?;
        fails("stat", ErrorKind::NotFound, files.stat(path).await)?;
        fails("rename", ErrorKind::NotFound, files.rename(path, "x").await)?;
        fails("copy", ErrorKind::NotFound, files.copy(path, "x").await)?;
        fails("remove", ErrorKind::NotFound, files.remove(path).await)?;
        fails("chmod", ErrorKind::NotFound, files.set_mode(path, 0o600).await)?;
    }
    Ok(())
}

/// Where the guest is root on its host nothing is denied to it, nor then to the caller.
async fn what_the_guest_may_not_reach_is_denied(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("mkdir closed; echo x > closed/file; echo x > secret; chmod 0 closed secret")
        .await?;

    for path in ["closed/file", "secret"] {
        let guest = scratch.sh(&format!("cat {path}")).await?.outcome;
        let seen = read(&scratch, path).await;
        match (guest.succeeded(), seen) {
            (true, Ok(_)) => {}
            (false, seen) => drop(fails(path, ErrorKind::Denied, seen)?),
            (true, Err(error)) => return broken(format!("only the guest reads {path}: {error}")),
        }
    }
    let guest = scratch.sh("echo x > closed/new").await?.outcome;
    if !guest.succeeded() {
        fails("write", ErrorKind::Denied, scratch.files().write("closed/new", content("x")).await)?;
    }
    scratch.text("chmod 700 closed").await?;
    Ok(())
}

async fn links_are_followed_as_the_guest_would(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("echo inside > real; ln -s real link; ln -s /etc/passwd out; ln -s gone broken")
        .await?;
    scratch.text("ln -s round round").await?;

    same("link", read(&scratch, "link").await?, b"inside\n".to_vec())?;
    let guest = scratch.sh("cat out").await?;
    match read(&scratch, "out").await {
        Ok(bytes) => check(guest.outcome.succeeded() && bytes == guest.stdout, || {
            format!("read {} bytes where the guest saw {}", bytes.len(), guest.stdout.len())
        })?,
        Err(error) => check(!guest.outcome.succeeded(), || error.to_string())?,
    }
    fails("a broken link", ErrorKind::NotFound, read(&scratch, "broken").await)?;
    fails("a circle", ErrorKind::Invalid, read(&scratch, "round").await)?;
    Ok(())
}

async fn only_regular_files_are_read(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir folder; mkfifo pipe; ln -s pipe to-pipe").await?;

    for path in ["folder", "pipe", "to-pipe", "/dev/zero", "."] {
        fails(path, ErrorKind::Invalid, scratch.files().read(path).await)?;
    }
    Ok(())
}

async fn reading_ends_where_the_file_did(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "log", vec![b'a'; 3 << 20]).await?;

    let stream = scratch.files().read("log").await?;
    scratch.text("head -c 1048576 /dev/zero >> log").await?;
    let pieces: Vec<Bytes> = stream.try_collect().await?;

    let seen = pieces.concat();
    check(seen == vec![b'a'; 3 << 20], || format!("{} bytes", seen.len()))
}

async fn a_file_of_any_size_is_read(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let size = 32 << 20;
    scratch.text(&format!("truncate -s {size} big; printf end >> big")).await?;

    let mut stream = scratch.files().read("big").await?;
    let (mut length, mut last) = (0, Bytes::new());
    while let Some(piece) = stream.try_next().await? {
        length += piece.len();
        last = piece;
    }

    same("length", length, size + 3)?;
    check(last.ends_with(b"d"), || format!("it ends in {:?}", last.last()))
}

async fn a_directory_is_listed_by_name(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p d/sub; cd d; printf 123 > b; : > .hidden; ln -s b a; : > 'Z ä'").await?;

    let listing = scratch.files().list("d").await?;

    same("names", names(&listing.entries), vec![".hidden", "Z ä", "a", "b", "sub"])?;
    same("whole", listing.truncated, false)?;
    let kinds: Vec<_> = listing.entries.iter().map(|entry| entry.kind).collect();
    let expected = vec![Kind::File, Kind::File, Kind::Symlink, Kind::File, Kind::Directory];
    same("kinds", kinds, expected)?;
    same("size", listing.entries[3].size, 3)?;
    let stat = scratch.files().stat("d/b").await?;
    same("as stat tells it", &listing.entries[3], &stat)
}

async fn a_long_listing_is_whole_or_says_it_is_not(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir many; cd many; seq -f %05g 3000 | xargs touch").await?;

    let listing = scratch.files().list("many").await?;

    let expected: Vec<_> = (1..=3000).map(|number| format!("{number:05}")).collect();
    let seen = names(&listing.entries);
    check(expected.iter().zip(&seen).all(|(one, other)| one == other), || "out of order".into())?;
    check(!seen.is_empty(), || "nothing is listed".into())?;
    same("truncated", listing.truncated, seen.len() < 3000)
}

async fn listing_a_file_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "file", "x").await?;

    fails("list", ErrorKind::Invalid, scratch.files().list("file").await)?;
    Ok(())
}

async fn a_path_is_told_as_what_it_is(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d; printf 12345 > f; chmod 640 f; ln -s d/../f l; mkfifo p").await?;
    let files = scratch.files();

    let file = files.stat("f").await?;
    same("file", (file.kind, file.size, file.mode), (Kind::File, 5, 0o640))?;
    same("name", file.name, "f".into())?;
    let seconds: i64 = scratch.text("stat -c %Y f").await?.trim_end().parse().unwrap_or(-1);
    same("modified", file.modified.as_second(), seconds)?;
    let link = files.stat("l").await?;
    same("link", (link.kind, link.target), (Kind::Symlink, Some("d/../f".into())))?;
    same("directory", files.stat("d").await?.kind, Kind::Directory)?;
    same("pipe", files.stat("p").await?.kind, Kind::Other)?;
    same("root", files.stat("/").await?.kind, Kind::Directory)
}

async fn directories_are_made_with_those_they_need(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    scratch.files().make_directory("a/b/c").await?;
    scratch.files().make_directory("a/b/c").await?;
    scratch.files().make_directory("a").await?;

    scratch.text("[ -d a/b/c ] && touch a/b/c/mine").await?;
    put(&scratch, "file", "x").await?;
    fails("over a file", ErrorKind::Invalid, scratch.files().make_directory("file/below").await)?;
    Ok(())
}

async fn renaming_moves_and_replaces(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "one", "1").await?;
    put(&scratch, "two", "2").await?;

    scratch.files().rename("one", "two").await?;

    same("content", scratch.text("cat two; ls").await?, "1two\n".into())
}

async fn renaming_moves_directories(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p from/deep to; echo x > from/deep/file").await?;

    scratch.files().rename("from", "to/there").await?;

    same("content", scratch.text("cat to/there/deep/file; ls").await?, "x\nto\n".into())
}

async fn copying_copies_content_and_mode(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let bytes: Vec<u8> = (0..500_000u32).flat_map(u32::to_le_bytes).collect();
    put(&scratch, "from", bytes.clone()).await?;
    scratch.text("chmod 751 from; echo old > there").await?;

    scratch.files().copy("from", "new/to").await?;
    scratch.files().copy("from", "there").await?;

    for path in ["new/to", "there"] {
        let seen = read(&scratch, path).await?;
        check(seen == bytes, || format!("`{path}` differs: {} bytes", seen.len()))?;
    }
    same("mode", scratch.text("stat -c %a from new/to").await?, "751\n751\n".into())
}

async fn copying_what_is_no_file_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir folder; mkfifo pipe; echo x > file").await?;

    for (from, to) in [("folder", "x"), ("pipe", "x"), ("file", "folder"), ("file", "pipe")] {
        fails(from, ErrorKind::Invalid, scratch.files().copy(from, to).await)?;
    }
    same("what is there", scratch.text("ls -A").await?, "file\nfolder\npipe\n".into())
}

async fn removing_a_link_leaves_its_target(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("mkdir d; echo x > d/f; ln -s d to-d; ln -s d/f to-f; ln -s nowhere to-none")
        .await?;

    for link in ["to-d", "to-f", "to-none"] {
        scratch.files().remove(link).await?;
    }

    same("what is there", scratch.text("find . | sort").await?, ".\n./d\n./d/f\n".into())
}

async fn removing_a_directory_removes_all_it_holds(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("mkdir -p d/e/f; : > d/a; : > d/e/b; mkfifo d/e/f/p; ln -s / d/l; : > kept")
        .await?;

    scratch.files().remove("d").await?;
    scratch.files().remove("kept").await?;

    same("what is there", scratch.text("ls -A").await?, String::new())
}

async fn removing_a_deep_tree_works(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.files().make_directory(&format!("top{}", "/d".repeat(1000))).await?;

    scratch.files().remove("top").await?;

    same("what is there", scratch.text("ls -A").await?, String::new())
}

async fn removing_does_not_follow_links_out_of_the_tree(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("mkdir d kept; echo x > kept/file; ln -s ../kept d/link; ln -s ../kept/file d/f")
        .await?;

    scratch.files().remove("d").await?;

    same("kept", scratch.text("cat kept/file; ls -A").await?, "x\nkept\n".into())
}

async fn modes_are_set(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "tool", "#!/bin/sh\necho ran\n").await?;

    scratch.files().set_mode("tool", 0o751).await?;

    same("mode", scratch.text("stat -c %a tool").await?, "751\n".into())?;
    same("told", scratch.files().stat("tool").await?.mode, 0o751)?;
    let ran = scratch.run(crate::Command::new(["./tool"])).await?;
    same("it runs", text(&ran.stdout), "ran\n".into())
}

async fn a_mode_out_of_range_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "file", "x").await?;

    for mode in [0o1000, 0o4755, u32::MAX] {
        fails("chmod", ErrorKind::Invalid, scratch.files().set_mode("file", mode).await)?;
    }
    same("mode", scratch.files().stat("file").await?.mode, 0o644)
}
