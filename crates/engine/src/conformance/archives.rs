//! Directories as archives: out whole or not at all, in without a way out.

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{
    Failure, Stage,
    case::{CaseResult, cases, check, fails, same},
    files::{content, put, read},
    scratch::Scratch,
};
use crate::{Error, ErrorKind, Limits, Spec};

cases![
    a_tree_goes_out_and_comes_back,
    the_guests_tar_reads_what_is_packed,
    what_the_guests_tar_packs_is_unpacked,
    one_file_is_packed_under_its_name,
    links_are_packed_and_not_followed,
    pipes_and_sockets_are_left_out_and_told,
    a_file_that_changes_keeps_the_archive_whole,
    only_directories_and_files_are_packed,
    a_wide_directory_is_packed_whole,
    names_that_lead_out_are_denied,
    links_are_not_written_through,
    devices_are_denied,
    set_id_bits_are_dropped,
    unpacking_replaces_files_and_links,
    an_archive_that_breaks_off_is_not_taken_for_whole,
    an_upload_that_fails_leaves_what_was_whole,
    what_is_no_archive_is_invalid,
    unpacking_over_a_file_is_invalid,
    no_room_to_unpack_is_exhausted,
];

/// What a line of shell tells of a tree: names, kinds, modes, links, sizes and times.
const TOLD: &str = "find . -printf '%P %y %m %l ' \\( -type f -printf '%s %T@\\n' -o -printf '\\n' \\) \
                    | sed 's/\\.[0-9]*$//' | sort";

/// One entry, as anybody could write it.
fn entry(kind: u8, name: &str, link: &str, mode: u32, data: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{:011o}", data.len()).as_bytes());
    put(136, b"07346545000");
    put(148, b"        ");
    put(156, &[kind]);
    put(157, link.as_bytes());
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().copied().map(u32::from).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend_from_slice(data);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

fn file(name: &str, data: &str) -> Vec<u8> {
    entry(b'0', name, "", 0o644, data.as_bytes())
}

fn archive(entries: &[Vec<u8>]) -> Bytes {
    [entries.concat(), vec![0; 1024]].concat().into()
}

async fn pack(scratch: &Scratch, path: &str) -> Result<Bytes, Failure> {
    let pieces: Vec<Bytes> = scratch.files().pack(path).await?.try_collect().await?;
    Ok(pieces.concat().into())
}

async fn unpack(scratch: &Scratch, path: &str, archive: Bytes) -> crate::Result<()> {
    scratch.files().unpack(path, content(archive)).await
}

/// Makes the directory `from` with one of everything.
async fn tree(scratch: &Scratch) -> CaseResult {
    let line = "mkdir -p from/empty from/d/deeper && cd from && printf content > d/file && \
                : > 'no content' && head -c 300000 /dev/urandom > large && \
                printf x > \"$(printf 'odd \\n \\351')\" && ln -s /nowhere absolute && \
                ln -s .. d/up && ln large d/hard && printf '#!/bin/sh' > run && chmod 751 run && \
                chmod 700 d/deeper && touch -d @1000000000 run d/file d/deeper && \
                long=$(printf '%0200d' 1) && mkdir -p $long/$long && printf x > $long/$long/$long";
    scratch.text(line).await.map(drop)
}

async fn same_trees(scratch: &Scratch) -> CaseResult {
    let told = |directory: &str| format!("cd {directory} && {TOLD}");
    let (from, to) = (scratch.text(&told("from")).await?, scratch.text(&told("to")).await?);
    same("trees", to, from)?;
    scratch.text("diff -r --no-dereference from to").await.map(drop)
}

async fn a_tree_goes_out_and_comes_back(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    tree(&scratch).await?;

    let packed = pack(&scratch, "from").await?;
    unpack(&scratch, "to", packed).await?;

    same_trees(&scratch).await?;
    let line = "[ to/large -ef to/d/hard ] && echo one";
    same("hard links", scratch.text(line).await?, "one\n".into())
}

async fn the_guests_tar_reads_what_is_packed(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    tree(&scratch).await?;

    let packed = pack(&scratch, "from").await?;
    put(&scratch, "packed", packed).await?;

    let said = scratch.text("mkdir to && tar xpf packed -C to 2>&1").await?;
    same("what tar says", said, String::new())?;
    same_trees(&scratch).await
}

async fn what_the_guests_tar_packs_is_unpacked(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    tree(&scratch).await?;

    for format in ["gnu", "posix"] {
        scratch.text(&format!("rm -rf to && tar cf packed --format {format} -C from .")).await?;
        let packed = read(&scratch, "packed").await?;
        unpack(&scratch, "to", packed.into()).await?;
        same_trees(&scratch).await?;
    }
    Ok(())
}

async fn one_file_is_packed_under_its_name(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d && printf alone > d/file && ln -s d/file link").await?;

    for path in ["d/file", "link"] {
        let packed = pack(&scratch, path).await?;
        unpack(&scratch, "to", packed).await?;
    }

    same("content", scratch.text("cat to/file to/link").await?, "alonealone".into())
}

async fn links_are_packed_and_not_followed(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d && ln -s / d/root && ln -s .. d/up && ln -s /etc/passwd d/file").await?;

    let packed = pack(&scratch, "d").await?;

    check(packed.len() < 10_000, || format!("{} bytes for three links", packed.len()))?;
    unpack(&scratch, "to", packed).await?;
    same(
        "links",
        scratch.text("cd to && readlink file root up").await?,
        "/etc/passwd\n/\n..\n".into(),
    )
}

async fn pipes_and_sockets_are_left_out_and_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d && mkfifo d/pipe && printf x > d/file").await?;

    let packed = pack(&scratch, "d").await?;

    let told = b"atoll left out 1\npipe (a named pipe)";
    check(packed.windows(told.len()).any(|bytes| bytes == told), || "nothing is told".into())?;
    unpack(&scratch, "to", packed).await?;
    same("unpacked", scratch.text("ls -A to").await?, "file\n".into())
}

async fn a_file_that_changes_keeps_the_archive_whole(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let size = 16 << 20;
    for change in [": > d/big", "cat d/big >> d/big.more; cat d/big.more >> d/big"] {
        scratch.text(&format!("rm -rf d to; mkdir d; head -c {size} /dev/zero > d/big")).await?;
        let mut packed = scratch.files().pack("d").await?;
        let first = packed.next().await.transpose()?.unwrap_or_default();
        scratch.text(change).await?;

        let rest: Vec<Bytes> = packed.try_collect().await?;
        let whole = [&[first], rest.as_slice()].concat().concat();
        unpack(&scratch, "to", whole.into()).await?;

        same("size", scratch.text("stat -c %s to/big").await?, format!("{size}\n"))?;
    }
    Ok(())
}

async fn only_directories_and_files_are_packed(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkfifo pipe").await?;

    let packing = |path: &'static str| {
        let scratch = &scratch;
        async move { scratch.files().pack(path).await.map(drop) }
    };
    fails("a missing path", ErrorKind::NotFound, packing("nothing").await)?;
    fails("a pipe", ErrorKind::Invalid, packing("pipe").await)?;
    fails("an empty path", ErrorKind::Invalid, packing("").await)?;
    fails("the kernel's files", ErrorKind::Denied, packing("/proc").await).map(drop)
}

async fn a_wide_directory_is_packed_whole(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d && cd d && seq 5000 | xargs touch").await?;

    let packed = pack(&scratch, "d").await?;
    unpack(&scratch, "to", packed).await?;

    same("names", scratch.text("ls to | wc -l").await?.trim().to_owned(), "5000".into())
}

async fn names_that_lead_out_are_denied(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir to && printf old > victim").await?;

    for name in ["../victim", "/tmp/victim-of-a-case", "a/../../victim", ".."] {
        let seen = unpack(&scratch, "to", archive(&[file("first", "1"), file(name, "new")])).await;
        let message = fails(name, ErrorKind::Denied, seen)?;
        check(message.contains(name), || format!("{message} does not name {name}"))?;
    }
    let hard = entry(b'1', "link", "../victim", 0o644, b"");
    fails("a hard link", ErrorKind::Denied, unpack(&scratch, "to", archive(&[hard])).await)?;
    let line = "cat victim; ls -A to; ls -d /tmp/victim-of-a-case 2>/dev/null || true";
    same("left alone", scratch.text(line).await?, "oldfirst\n".into())
}

async fn links_are_not_written_through(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir to other && ln -s ../other to/there").await?;
    let brought = entry(b'2', "brought", "../other", 0o777, b"");

    let through = archive(&[brought.clone(), file("brought/new", "x")]);
    fails("brought", ErrorKind::Denied, unpack(&scratch, "to", through).await)?;
    fails(
        "there",
        ErrorKind::Denied,
        unpack(&scratch, "to", archive(&[file("there/new", "x")])).await,
    )?;
    let directory = archive(&[entry(b'5', "there", "", 0o777, b"")]);
    fails("a directory", ErrorKind::Denied, unpack(&scratch, "to", directory).await)?;

    same("other", scratch.text("ls -A other").await?, String::new())
}

async fn devices_are_denied(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    for (kind, what) in [(b'3', "char"), (b'4', "block"), (b'6', "pipe")] {
        let seen = unpack(&scratch, "to", archive(&[entry(kind, what, "", 0o666, b"")])).await;
        let message = fails(what, ErrorKind::Denied, seen)?;
        check(message.contains(what), || format!("{message} does not name {what}"))?;
    }
    same("unpacked", scratch.text("ls -A to").await?, String::new())
}

async fn set_id_bits_are_dropped(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let entries =
        [entry(b'0', "program", "", 0o6755, b"x"), entry(b'5', "directory", "", 0o7750, b"")];

    unpack(&scratch, "to", archive(&entries)).await?;

    let line = "stat -c %a to/program to/directory";
    same("modes", scratch.text(line).await?, "755\n750\n".into())
}

async fn unpacking_replaces_files_and_links(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = "mkdir to to/d && chmod 711 to/d && printf old > to/file && printf old > kept && \
                ln -s ../kept to/link";
    scratch.text(line).await?;

    let entries = [
        file("file", "new"),
        file("link", "new"),
        entry(b'5', "d", "", 0o777, b""),
        file("d/file", "new"),
    ];
    unpack(&scratch, "to", archive(&entries)).await?;

    let line = "cat to/file to/link to/d/file kept; stat -c %a to/d; [ ! -L to/link ]";
    same("after", scratch.text(line).await?, "newnewnewold711\n".into())
}

async fn an_archive_that_breaks_off_is_not_taken_for_whole(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let whole = archive(&[file("first", "first"), file("second", &"second ".repeat(300))]);

    for length in [0, 511, 1024, 1500, 2000, whole.len() - 1024, whole.len() - 512] {
        scratch.text("rm -rf to").await?;
        let seen = unpack(&scratch, "to", whole.slice(..length)).await;
        fails(&format!("{length} bytes"), ErrorKind::Invalid, seen)?;
        let expected = match length {
            0..1024 => "",
            1024..3500 => "first\n",
            _ => "first\nsecond\n",
        };
        same("what was whole", scratch.text("ls -A to").await?, expected.into())?;
    }
    Ok(())
}

async fn an_upload_that_fails_leaves_what_was_whole(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir to && printf old > to/second").await?;
    let whole = archive(&[file("first", "first"), file("second", &"second ".repeat(300))]);
    let pieces = vec![Ok(whole.slice(..2000)), Err(Error::invalid("the client left"))];

    let unpacked = scratch.files().unpack("to", stream::iter(pieces).boxed()).await;

    check(unpacked.is_err(), || "half an archive was taken for a whole one".into())?;
    scratch.until("[ \"$(ls -A to | tr '\\n' ' ')\" = 'first second ' ]").await?;
    same("content", scratch.text("cat to/first to/second").await?, "firstold".into())
}

async fn what_is_no_archive_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let gzip = [b"\x1f\x8b\x08\0".as_slice(), &[0; 1020]].concat();

    let message = fails("gzip", ErrorKind::Invalid, unpack(&scratch, "to", gzip.into()).await)?;
    check(message.contains("compressed"), || message)?;
    let noise = Bytes::from(vec![b'n'; 4096]);
    fails("noise", ErrorKind::Invalid, unpack(&scratch, "to", noise).await)?;
    let more = [archive(&[file("a", "a")]), archive(&[file("b", "b")])].concat();
    fails("two archives", ErrorKind::Invalid, unpack(&scratch, "to", more.into()).await).map(drop)
}

async fn unpacking_over_a_file_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("printf old > to; mkdir d d/taken").await?;

    let whole = archive(&[file("taken", "x")]);
    fails("into a file", ErrorKind::Invalid, unpack(&scratch, "to", whole.clone()).await)?;
    fails("over a directory", ErrorKind::Invalid, unpack(&scratch, "d", whole).await)?;

    same(
        "left alone",
        scratch.text("cat to; ls -A d d/taken").await?,
        "oldd:\ntaken\n\nd/taken:\n".into(),
    )
}

async fn no_room_to_unpack_is_exhausted(stage: Stage) -> CaseResult {
    let limits = Limits { disk: Some(atoll_types::quantity::Size(8 << 20)), ..Limits::default() };
    let spec = Spec { limits, ..stage.spec() };
    let scratch = Scratch::asking(&stage, "disk", spec).await?;
    let large = entry(b'0', "large", "", 0o644, &vec![b'x'; 12 << 20]);

    let seen = unpack(&scratch, "to", archive(&[file("first", "1"), large])).await;

    let message = fails("too much", ErrorKind::Exhausted, seen)?;
    check(message.contains("large"), || format!("{message} does not name the entry"))?;
    same("left", scratch.text("ls -A to").await?, "first\n".into())
}
