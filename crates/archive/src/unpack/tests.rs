use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use super::*;
use crate::header::{BLOCK, DIRECTORY, FILE, HARD_LINK, Outgoing, SYMLINK, padding};

/// A tree, and a place beside it that must stay as it is.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("root")).unwrap();
        fs::create_dir(directory.path().join("outside")).unwrap();
        fs::write(directory.path().join("outside/file"), "untouched").unwrap();
        Self(directory)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn unpack(&self, archive: &[u8]) -> Result<Contents> {
        let root = File::open(self.path("root")).unwrap();
        let mut unpacker = Unpacker::new(root.into(), false, 0o022).unwrap();
        let result = archive.chunks(700).try_for_each(|piece| unpacker.write(piece));
        let result = result.and_then(|()| unpacker.finish());
        drop(unpacker);
        self.check();
        result
    }

    /// Nothing outside was touched, and nothing is half done.
    fn check(&self) {
        assert_eq!(names(&self.path("")), ["outside", "root"]);
        assert_eq!(names(&self.path("outside")), ["file"]);
        assert_eq!(fs::read_to_string(self.path("outside/file")).unwrap(), "untouched");
        assert!(!names(&self.path("root")).iter().any(|name| name.starts_with(".atoll-")));
    }
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn entry(kind: u8, name: &str, link: &str, data: &str) -> Vec<u8> {
    let size = data.len() as u64;
    let (name, link) = (name.as_bytes(), link.as_bytes());
    let mut archive = Vec::new();
    Outgoing { kind, name, link, mode: 0o7775, size, modified: 1_000_000_000 }.write(&mut archive);
    archive.extend_from_slice(data.as_bytes());
    archive.resize(archive.len() + padding(size), 0);
    archive
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut archive = entries.concat();
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

fn refused(world: &World, entries: &[Vec<u8>], named: &str) {
    let failed = world.unpack(&archive(entries)).unwrap_err();
    assert!(matches!(failed.cause(), Cause::Refused(_)), "{failed}");
    assert_eq!(failed.entry(), Some(named.as_bytes()), "{failed}");
}

#[test]
fn files_directories_and_links_are_made_with_modes_and_times() {
    let world = World::new();

    let done = world
        .unpack(&archive(&[
            entry(DIRECTORY, "d/", "", ""),
            entry(FILE, "d/file", "", "content"),
            entry(SYMLINK, "d/link", "../nowhere", ""),
            entry(HARD_LINK, "other", "d/file", ""),
            entry(FILE, "made/on/the/way", "", ""),
        ]))
        .unwrap();

    assert_eq!((done.entries, done.bytes), (5, 7));
    let file = fs::metadata(world.path("root/d/file")).unwrap();
    assert_eq!((file.mode() & 0o7777, file.mtime()), (0o755, 1_000_000_000));
    assert_eq!(file.nlink(), 2);
    let directory = fs::metadata(world.path("root/d")).unwrap();
    assert_eq!((directory.mode() & 0o7777, directory.mtime()), (0o755, 1_000_000_000));
    assert_eq!(fs::read_link(world.path("root/d/link")).unwrap(), Path::new("../nowhere"));
    assert_eq!(fs::read_to_string(world.path("root/other")).unwrap(), "content");
}

#[test]
fn nothing_is_written_through_a_link_of_the_archive() {
    let world = World::new();
    let way = |target: &str| entry(SYMLINK, "way", target, "");

    refused(&world, &[way("../outside"), entry(FILE, "way/new", "", "x")], "way");
    refused(&world, &[way("../outside"), entry(DIRECTORY, "way/new/", "", "")], "way");
    refused(&world, &[way("../outside"), entry(SYMLINK, "way/new", "x", "")], "way");
    refused(&world, &[way("../outside"), entry(HARD_LINK, "new", "way/file", "")], "way");
    refused(&world, &[way("../outside"), entry(DIRECTORY, "way/", "", "")], "way");
    refused(&world, &[way("."), entry(FILE, "way/new", "", "x")], "way");
    refused(&world, &[way("../outside/file"), entry(HARD_LINK, "new", "way", "")], "new");
}

#[test]
fn a_file_replaces_a_link_and_not_what_it_leads_to() {
    let world = World::new();
    symlink("../outside/file", world.path("root/link")).unwrap();

    world.unpack(&archive(&[entry(FILE, "link", "", "new")])).unwrap();

    assert!(!fs::symlink_metadata(world.path("root/link")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(world.path("root/link")).unwrap(), "new");
}

#[test]
fn nothing_is_written_through_a_link_that_was_there() {
    let world = World::new();
    symlink("../outside", world.path("root/link")).unwrap();

    refused(&world, &[entry(FILE, "link/new", "", "x")], "link");
    refused(&world, &[entry(DIRECTORY, "link", "", "")], "link");
}

#[test]
fn no_kind_of_thing_replaces_another() {
    let world = World::new();
    fs::create_dir(world.path("root/directory")).unwrap();
    fs::write(world.path("root/file"), "old").unwrap();

    for kind in [FILE, SYMLINK] {
        let failed = world.unpack(&archive(&[entry(kind, "directory", "x", "")])).unwrap_err();
        assert_eq!(failed.cause(), Cause::System(Errno::ISDIR));
    }
    refused(&world, &[entry(DIRECTORY, "file", "", "")], "file");
    refused(&world, &[entry(FILE, "file/below", "", "")], "file");
    assert_eq!(fs::read_to_string(world.path("root/file")).unwrap(), "old");
}

#[test]
fn what_was_whole_stays_and_what_was_not_is_gone() {
    let world = World::new();
    fs::write(world.path("root/second"), "old").unwrap();
    let whole = archive(&[
        entry(FILE, "first", "", "first"),
        entry(DIRECTORY, "d", "", ""),
        entry(FILE, "second", "", &"second".repeat(1000)),
    ]);

    let failed = world.unpack(&whole[..4000]).unwrap_err();

    assert_eq!(failed.entry(), Some(&b"second"[..]));
    assert_eq!(names(&world.path("root")), ["d", "first", "second"]);
    assert_eq!(fs::read_to_string(world.path("root/second")).unwrap(), "old");
    assert_eq!(fs::metadata(world.path("root/d")).unwrap().mode() & 0o777, 0o755);
}

#[test]
fn an_existing_directory_keeps_its_mode() {
    let world = World::new();
    fs::create_dir(world.path("root/d")).unwrap();
    fs::set_permissions(world.path("root/d"), fs::Permissions::from_mode(0o700)).unwrap();

    let entries = [entry(DIRECTORY, "./", "", ""), entry(DIRECTORY, "d", "", "")];
    world.unpack(&archive(&entries)).unwrap();

    assert_eq!(fs::metadata(world.path("root/d")).unwrap().mode() & 0o777, 0o700);
    assert_ne!(fs::metadata(world.path("root")).unwrap().mtime(), 1_000_000_000);
}

#[test]
fn the_same_archive_may_come_twice() {
    let world = World::new();
    let archive = archive(&[
        entry(DIRECTORY, "d", "", ""),
        entry(FILE, "d/file", "", "content"),
        entry(HARD_LINK, "d/link", "d/file", ""),
        entry(HARD_LINK, "d/link", "d/file", ""),
        entry(SYMLINK, "d/sym", "file", ""),
    ]);

    world.unpack(&archive).unwrap();
    world.unpack(&archive).unwrap();

    assert_eq!(names(&world.path("root/d")), ["file", "link", "sym"]);
}

#[test]
fn deep_paths_are_made() {
    let world = World::new();
    let deep = "directory/".repeat(600);
    let below = |name: &str| entry(FILE, &format!("{deep}{name}"), "", "x");

    let done = world.unpack(&archive(&[below("a"), below("b"), below("c/d")])).unwrap();

    assert_eq!(done.entries, 3);
}
