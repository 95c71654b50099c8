//! Trees through archives and back, and archives through the tar of this machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::Write as _,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use atoll_archive::{Contents, Packer, Unpacker};
use tempfile::TempDir;

/// What a path is: its kind, mode and time of change, and its content or target.
type Told = BTreeMap<OsString, (u32, i64, Vec<u8>)>;

fn tell(root: &Path) -> Told {
    fn go(root: &Path, directory: &Path, told: &mut Told) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let content = if about.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if about.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let name = path.strip_prefix(root).unwrap().as_os_str().to_owned();
            // Not every tar gives links a time.
            let time = if about.is_symlink() { 0 } else { about.mtime() };
            told.insert(name, (about.mode(), time, content));
            if about.is_dir() {
                go(root, &path, told);
            }
        }
    }
    let mut told = Told::new();
    go(root, root, &mut told);
    told
}

/// A tree with what makes archivers stumble.
fn nasty(root: &Path) {
    let odd = OsStr::from_bytes(b"odd \xff\xfe \n name");
    fs::create_dir_all(root.join("empty/directory")).unwrap();
    fs::write(root.join("empty file"), "").unwrap();
    fs::write(root.join(odd), "odd").unwrap();
    fs::write(root.join("-rf"), "an option").unwrap();
    fs::write(root.join("block"), [1; 512]).unwrap();
    fs::write(root.join("more"), [2; 513]).unwrap();
    fs::write(root.join("large"), vec![3; 300_000]).unwrap();
    let long = root.join("long").join("n".repeat(255)).join("m".repeat(255));
    fs::create_dir_all(&long).unwrap();
    fs::write(long.join(OsStr::from_bytes(&[0xfe; 200])), "deep").unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    symlink("../../..", root.join("up")).unwrap();
    symlink(".", root.join("here")).unwrap();
    symlink("t".repeat(400), root.join("far")).unwrap();
    fs::hard_link(root.join("large"), root.join("another large")).unwrap();
    for (name, mode) in [("private", 0o600), ("program", 0o755), ("read only", 0o444), ("no", 0)] {
        fs::write(root.join(name), name).unwrap();
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(root.join("empty"), fs::Permissions::from_mode(0o750)).unwrap();
    let old = fs::FileTimes::new()
        .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_hours(8760));
    File::open(root.join("program")).unwrap().set_times(old).unwrap();
}

fn tree() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("in")).unwrap();
    fs::create_dir(directory.path().join("out")).unwrap();
    directory
}

fn pack(root: &Path, piece: usize) -> (Vec<u8>, Packer) {
    let mut packer = Packer::directory(File::open(root).unwrap().into()).unwrap();
    let mut archive = Vec::new();
    while packer.read(&mut archive, piece).unwrap() {}
    (archive, packer)
}

fn unpack(archive: &[u8], root: &Path) -> Contents {
    let mut unpacker = Unpacker::new(File::open(root).unwrap().into(), false, 0).unwrap();
    archive.chunks(10_000).for_each(|piece| unpacker.write(piece).unwrap());
    unpacker.finish().unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_nasty_tree_comes_back_as_it_was() {
    for piece in [1, 700, 100_000] {
        let directory = tree();
        let (from, to) = (directory.path().join("in"), directory.path().join("out"));
        nasty(&from);

        let (archive, packer) = pack(&from, piece);
        let unpacked = unpack(&archive, &to);

        let mut expected = tell(&from);
        if !is_root() {
            assert_eq!(packer.contents().left_out.count(), 1);
            expected.remove(OsStr::new("no"));
        }
        assert_eq!(tell(&to), expected);
        assert_eq!(&unpacked, packer.contents());
        let large = |name: &str| fs::metadata(to.join(name)).unwrap().ino();
        assert_eq!(large("large"), large("another large"));
    }
}

#[test]
fn the_usual_tar_reads_what_is_packed() {
    let directory = tree();
    let (from, to) = (directory.path().join("in"), directory.path().join("out"));
    nasty(&from);
    let _ = fs::remove_file(from.join("no"));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        from.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let (archive, packer) = pack(&from, 10_000);
    fs::remove_file(from.join("pipe")).unwrap();

    let mut tar = Command::new("tar");
    tar.args(["xp", "-C"]).arg(&to).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut tar = tar.spawn().unwrap();
    tar.stdin.take().unwrap().write_all(&archive).unwrap();
    let ended = tar.wait_with_output().unwrap();

    assert_eq!(packer.contents().left_out.told(), ["pipe (a named pipe)"]);
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert!(ended.status.success());
    assert_eq!(tell(&to), tell(&from));
}

#[test]
fn what_the_usual_tar_packs_is_read() {
    for format in ["gnu", "posix", "ustar"] {
        let directory = tree();
        let (from, to) = (directory.path().join("in"), directory.path().join("out"));
        nasty(&from);
        let _ = fs::remove_file(from.join("no"));
        if format == "ustar" {
            // It has no room for these.
            fs::remove_file(from.join("far")).unwrap();
            fs::remove_dir_all(from.join("long")).unwrap();
        }
        let tar = Command::new("tar")
            .args(["c", "--format", format, "-C"])
            .arg(&from)
            .arg(".")
            .output()
            .unwrap();
        assert!(tar.status.success(), "{tar:?}");

        unpack(&tar.stdout, &to);

        assert_eq!(tell(&to), tell(&from), "{format}");
    }
}

#[test]
fn sockets_and_pipes_are_left_out_and_told() {
    let directory = tree();
    let from = directory.path().join("in");
    let _listener = UnixListener::bind(from.join("socket")).unwrap();
    fs::write(from.join("file"), "x").unwrap();

    let (archive, packer) = pack(&from, 10_000);
    let unpacked = unpack(&archive, &directory.path().join("out"));

    assert_eq!(packer.contents().left_out.told(), ["socket (a socket)"]);
    assert_eq!(unpacked.left_out.told(), ["socket (a socket)"]);
    assert_eq!(unpacked.entries, 1);
}

#[test]
fn a_file_that_changes_keeps_the_archive_whole() {
    let directory = tree();
    let (from, to) = (directory.path().join("in"), directory.path().join("out"));
    fs::write(from.join("file"), vec![b'x'; 100_000]).unwrap();
    for (length, count) in [(200_000, 0), (20_000, 1)] {
        let mut packer = Packer::directory(File::open(&from).unwrap().into()).unwrap();
        let mut archive = Vec::new();
        while archive.len() < 10_000 {
            assert!(packer.read(&mut archive, 512).unwrap());
        }
        File::options().write(true).open(from.join("file")).unwrap().set_len(length).unwrap();
        while packer.read(&mut archive, 10_000).unwrap() {}

        let unpacked = unpack(&archive, &to);

        assert_eq!(unpacked.left_out.count(), count, "{:?}", unpacked.left_out);
        let size = fs::metadata(to.join("file")).unwrap().len();
        assert_eq!(size, if count == 0 { 100_000 } else { 200_000 });
    }
}

#[test]
fn terabytes_of_nothing_are_left_out() {
    let directory = tree();
    let from = directory.path().join("in");
    File::create(from.join("huge")).unwrap().set_len(1 << 40).unwrap();
    File::create(from.join("some")).unwrap().set_len(1 << 20).unwrap();

    let (archive, packer) = pack(&from, 1 << 20);

    assert_eq!(packer.contents().left_out.told(), ["huge (mostly holes, and too large)"]);
    assert!(archive.len() < 2 << 20);
}

#[test]
fn a_deep_tree_is_packed_whole() {
    let directory = tree();
    let (from, to) = (directory.path().join("in"), directory.path().join("out"));
    // Deeper than directories are kept open, with something to do on the way back.
    let mut deep = PathBuf::new();
    for depth in 0..100 {
        fs::create_dir_all(from.join(&deep).join("sub")).unwrap();
        for name in ["a", "b", "z"] {
            fs::write(from.join(&deep).join(name), depth.to_string()).unwrap();
        }
        deep.push("sub");
    }

    let (archive, _) = pack(&from, 10_000);
    unpack(&archive, &to);

    assert_eq!(tell(&to), tell(&from));
}

#[test]
fn files_of_the_kernel_are_not_packed() {
    let proc = File::open("/proc/self").unwrap();

    assert!(Packer::directory(proc.into()).is_err());
}

#[test]
fn one_file_is_an_archive_too() {
    let directory = tree();
    let (from, to) = (directory.path().join("in/file"), directory.path().join("out"));
    fs::write(&from, "alone").unwrap();

    let mut packer = Packer::file(File::open(&from).unwrap().into(), b"file").unwrap();
    let mut archive = Vec::new();
    while packer.read(&mut archive, 100).unwrap() {}
    unpack(&archive, &to);

    assert_eq!(fs::read_to_string(to.join("file")).unwrap(), "alone");
}
