//! `atoll cp -r`.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _, symlink},
    },
    path::Path,
    process::Stdio,
};

use rustix::process::Signal;

use crate::{
    Case,
    atoll::{Atoll, Running, names, until},
};

pub(crate) const CASES: &[Case] = &[
    ("a_nasty_tree_goes_in_and_comes_out_unchanged", there_and_back),
    ("directories_go_where_docker_cp_puts_them", rules),
    ("a_directory_needs_to_be_asked_for", asked_for),
    ("an_archive_out_of_a_sandbox_writes_nowhere_else", hostile),
    ("an_old_directory_is_added_to_and_keeps_what_it_had", merge),
    ("archives_pass_through_standard_streams", streams),
    ("a_directory_goes_from_session_to_session", across),
    ("what_cannot_be_copied_is_told", told),
    ("a_stopped_copy_leaves_nothing_half_made", stopped),
    ("a_copy_tells_programs_what_it_did", summary),
];

/// What each path is: kind and mode, time, content or target.
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

fn nasty(root: &Path) {
    fs::create_dir_all(root.join("empty/directory")).unwrap();
    fs::write(root.join("no content"), "").unwrap();
    fs::write(root.join(OsStr::from_bytes(b"odd \xff\n\x1b[31m")), "odd").unwrap();
    fs::write(root.join("-rf"), "an option").unwrap();
    fs::write(root.join("large"), (0..=250_u8).cycle().take(2_000_000).collect::<Vec<_>>())
        .unwrap();
    let long = root.join("n".repeat(250)).join("m".repeat(250));
    fs::create_dir_all(&long).unwrap();
    fs::write(long.join("deep"), "deep").unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    symlink("../..", root.join("up")).unwrap();
    symlink("nothing", root.join("dangling")).unwrap();
    fs::hard_link(root.join("large"), root.join("linked")).unwrap();
    for (name, mode) in [("private", 0o600), ("program", 0o755), ("read only", 0o444)] {
        fs::write(root.join(name), name).unwrap();
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(root.join("empty"), fs::Permissions::from_mode(0o750)).unwrap();
}

fn there_and_back() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    fs::create_dir(atoll.path("in")).unwrap();
    nasty(&atoll.path("in"));

    atoll.ok(&["cp", "-r", "in", &format!("{session}:tree")]);
    let inside =
        atoll.ok(&["exec", &session, "--", "sh", "-c", "cd tree && ./program || ls -1 | wc -l"]);
    atoll.ok(&["cp", "-r", &format!("{session}:tree"), "out"]);

    assert!(!inside.is_empty());
    assert!(tell(&atoll.path("in")) == tell(&atoll.path("out")), "the trees differ");
    let inode = |name: &str| fs::metadata(atoll.path("out").join(name)).unwrap().ino();
    assert_eq!(inode("large"), inode("linked"));
}

fn rules() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let at = |path: &str| format!("{session}:{path}");
    fs::create_dir_all(atoll.path("src/sub")).unwrap();
    fs::write(atoll.path("src/sub/file"), "x").unwrap();
    fs::create_dir(atoll.path("there")).unwrap();

    // Into a directory that is there: under its name. As a new one: under the new name.
    atoll.ok(&["exec", &session, "--", "mkdir", "there"]);
    atoll.ok(&["cp", "-r", "src", &at("there")]);
    atoll.ok(&["cp", "-r", "src/", &at("new")]);
    atoll.ok(&["cp", "-r", "src/.", &at("there")]);
    atoll.ok(&["cp", "-r", "src", &at("")]);
    let found = atoll.ok(&["exec", &session, "--", "sh", "-c", "find . -type f | sort"]);
    assert_eq!(found, "./new/sub/file\n./src/sub/file\n./there/src/sub/file\n./there/sub/file\n");

    atoll.ok(&["cp", "-r", &at("src"), "there"]);
    atoll.ok(&["cp", "-r", &at("src/"), "fresh"]);
    atoll.ok(&["cp", "-r", &at("src/."), "there"]);
    atoll.ok(&["cp", "-r", &at(""), "home"]);
    for path in ["there/src/sub/file", "fresh/sub/file", "there/sub/file", "home/src/sub/file"] {
        assert_eq!(fs::read_to_string(atoll.path(path)).unwrap(), "x", "{path}");
    }

    // Over a file, and into what is not there: no.
    fs::write(atoll.path("taken"), "old").unwrap();
    let over = atoll.run(&["cp", "-r", &at("src"), "taken"]);
    let nowhere = atoll.run(&["cp", "-r", &at("src"), "no/such/place"]);
    let inside = atoll.run(&["cp", "-r", "src", &at("new/sub/file")]);
    assert_eq!((over.code, nowhere.code, inside.code), (125, 125, 125));
    assert_eq!(fs::read_to_string(atoll.path("taken")).unwrap(), "old");
    // A file is a file, with or without -r.
    atoll.ok(&["cp", "-r", &at("src/sub/file"), "single"]);
    assert_eq!(fs::read_to_string(atoll.path("single")).unwrap(), "x");
}

fn asked_for() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    fs::create_dir(atoll.path("src")).unwrap();

    let into = atoll.run(&["cp", "src", &format!("{session}:")]);
    let out = atoll.run(&["cp", &format!("{session}:/tmp"), "."]);

    assert_eq!((into.code, out.code), (125, 125));
    assert!(into.stderr.contains("-r") && out.stderr.contains("-r"), "{into:?} {out:?}");
}

/// One entry of an archive that nobody's tar would write.
fn entry(kind: u8, name: &[u8], link: &str, data: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name);
    put(100, b"0006777");
    put(124, format!("{:011o}", data.len()).as_bytes());
    put(136, b"00000000000");
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

/// A server that answers everything with what a hostile sandbox would send.
fn impostor(archive: Vec<u8>) -> (String, std::thread::JoinHandle<()>) {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        // The question what the path is, and the copy, each on a connection of its own.
        for answered in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                request.push(byte[0]);
            }
            let stat = br#"{"name":"d","path":"/d","kind":"directory","size":0,"mode":493,"modified":"2026-01-01T00:00:00Z"}"#;
            let body = if answered == 0 { stat.to_vec() } else { archive.clone() };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    (url, serving)
}

fn hostile() {
    let end = vec![0; 1024];
    let archives: [Vec<Vec<u8>>; 6] = [
        vec![entry(b'0', b"../escaped", "", b"x")],
        vec![entry(b'0', b"/tmp/atoll-escaped", "", b"x")],
        vec![entry(b'2', b"way", "..", b""), entry(b'0', b"way/escaped", "", b"x")],
        vec![entry(b'2', b"way", "../victim", b""), entry(b'1', b"x", "way", b"")],
        vec![entry(b'1', b"x", "../victim", b"")],
        vec![entry(b'3', b"device", "", b"")],
    ];
    for (number, entries) in archives.into_iter().enumerate() {
        for existing in [false, true] {
            let atoll = Atoll::new().with("ATOLL_API_KEY", "key");
            let victim = atoll.path("victim");
            fs::write(&victim, "untouched").unwrap();
            if existing {
                fs::create_dir(atoll.path("out")).unwrap();
            }
            let first = entry(b'0', b"first \x1b[31m", "", b"set-id");
            let archive = [vec![first], entries.clone(), vec![end.clone()]].concat().concat();
            let (url, serving) = impostor(archive);

            let ended = atoll.run(&["--server", &url, "cp", "-r", "s-1:d/.", "out"]);

            serving.join().unwrap();
            assert_eq!(ended.code, 125, "{number}: {ended:?}");
            assert!(ended.stderr.contains("cannot unpack"), "{number}: {ended:?}");
            assert!(!ended.stderr.contains('\x1b'), "{ended:?}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
            assert_eq!(fs::metadata(&victim).unwrap().nlink(), 1);
            assert!(!Path::new("/tmp/atoll-escaped").exists());
            let mut left = names(&atoll.path(""));
            left.retain(|name| name != ".local" && name != ".config");
            left.sort();
            if !existing {
                assert_eq!(left, ["victim"], "{number}");
                continue;
            }
            assert_eq!(left, ["out", "victim"], "{number}");
            let stayed = atoll.path("out").join(OsStr::from_bytes(b"first \x1b[31m"));
            let mode = fs::metadata(stayed).unwrap().mode() & 0o7777;
            assert_eq!(mode & 0o7000, 0, "{mode:o}");
            assert!(ended.stderr.contains("not whole"), "{ended:?}");
        }
    }
}

fn merge() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let line =
        "mkdir -p d/sub && printf new > d/file && printf new > d/link && printf new > d/sub/a";
    atoll.ok(&["exec", &session, "--", "sh", "-c", line]);
    fs::create_dir_all(atoll.path("out/sub")).unwrap();
    fs::set_permissions(atoll.path("out/sub"), fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["out/file", "out/kept", "elsewhere"] {
        fs::write(atoll.path(name), "old").unwrap();
    }
    symlink("../elsewhere", atoll.path("out/link")).unwrap();

    atoll.ok(&["cp", "-r", &format!("{session}:d/."), "out"]);

    let text = |name: &str| fs::read_to_string(atoll.path(name)).unwrap();
    assert_eq!(
        (text("out/file"), text("out/link"), text("out/sub/a")),
        ("new".into(), "new".into(), "new".into())
    );
    assert_eq!((text("out/kept"), text("elsewhere")), ("old".into(), "old".into()));
    assert_eq!(fs::metadata(atoll.path("out/sub")).unwrap().mode() & 0o777, 0o700);

    // Nor is a link followed that an earlier copy may have brought.
    symlink("../elsewhere", atoll.path("out/planted")).unwrap();
    atoll.ok(&["exec", &session, "--", "sh", "-c", "printf new > planted; mkdir way"]);
    let planted = atoll.run(&["cp", &format!("{session}:planted"), "out"]);
    symlink("..", atoll.path("out/way")).unwrap();
    let way = atoll.run(&["cp", "-r", &format!("{session}:way"), "out"]);
    assert_eq!((planted.code, way.code), (125, 125), "{planted:?} {way:?}");
    assert_eq!(text("elsewhere"), "old");

    // A directory that is a link here is not followed.
    fs::remove_dir_all(atoll.path("out/sub")).unwrap();
    fs::create_dir(atoll.path("other")).unwrap();
    symlink("../other", atoll.path("out/sub")).unwrap();
    let through = atoll.run(&["cp", "-r", &format!("{session}:d/."), "out"]);
    assert_eq!(through.code, 125, "{through:?}");
    assert_eq!(names(&atoll.path("other")), [""; 0]);
}

fn streams() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    atoll.ok(&["exec", &session, "--", "sh", "-c", "mkdir d && printf x > d/file"]);

    let packed = atoll.run(&["cp", "-r", &format!("{session}:d"), "-"]);
    let unpacked = atoll.feed(&["cp", "-r", "-", &format!("{session}:e")], &packed.stdout);
    let half = &packed.stdout[..packed.stdout.len() - 512];
    let broken = atoll.feed(&["cp", "-r", "-", &format!("{session}:f")], half);

    assert_eq!((packed.code, unpacked.code, broken.code), (0, 0, 125), "{unpacked:?} {broken:?}");
    assert_eq!(atoll.ok(&["exec", &session, "--", "cat", "e/file"]), "x");
}

fn across() {
    let atoll = Atoll::new();
    let (one, other) = (atoll.session(&[]), atoll.session(&[]));
    let line = "mkdir -p d/sub && printf x > d/sub/file && ln -s sub d/link && printf f > f && chmod 700 f";
    atoll.ok(&["exec", &one, "--", "sh", "-c", line]);

    atoll.ok(&["cp", "-r", &format!("{one}:d"), &format!("{other}:")]);
    atoll.ok(&["cp", &format!("{one}:f"), &format!("{other}:d")]);

    let line = "cat d/link/file d/f && stat -c %a d/f && readlink d/link";
    assert_eq!(atoll.ok(&["exec", &other, "--", "sh", "-c", line]), "xf700\nsub\n");
}

fn told() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let line = "mkdir d && mkfifo d/pipe && printf x > d/file";
    atoll.ok(&["exec", &session, "--", "sh", "-c", line]);

    let pipe = atoll.run(&["cp", "-r", &format!("{session}:d"), "out"]);
    atoll.ok(&["exec", &session, "--", "sh", "-c", "printf x > d/secret && chmod 0 d/secret"]);
    let secret = atoll.run(&["cp", "-r", &format!("{session}:d/."), "out"]);

    assert_eq!((pipe.code, secret.code), (0, 1), "{pipe:?} {secret:?}");
    assert!(pipe.stderr.contains("pipe (a named pipe)"), "{pipe:?}");
    assert!(secret.stderr.contains("secret (not readable)"), "{secret:?}");
    assert_eq!(names(&atoll.path("out")), ["file"]);
}

fn stopped() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let line = "mkdir d && printf x > d/first && head -c 100M /dev/zero > d/large";
    atoll.ok(&["exec", &session, "--", "sh", "-c", line]);
    let unfinished =
        |atoll: &Atoll| names(&atoll.path("")).iter().any(|name| name.starts_with(".atoll-"));

    let mut copy = Running::start(
        atoll.command(&["cp", "-r", &format!("{session}:d"), "out"]).stdin(Stdio::null()),
    );
    until("the copy has begun", || unfinished(&atoll) || atoll.path("out").exists());
    copy.signal(Signal::INT);
    let ended = copy.finish();

    // It may have been quicker than the signal: then it is whole.
    assert!(!unfinished(&atoll));
    if ended.signal == Some(2) {
        assert!(!atoll.path("out").exists());
    } else {
        assert_eq!(fs::metadata(atoll.path("out/large")).unwrap().len(), 100 << 20);
    }
}

fn summary() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    fs::create_dir(atoll.path("src")).unwrap();
    fs::write(atoll.path("src/file"), "12345").unwrap();
    let at = format!("{session}:src");

    let silent = atoll.run(&["cp", "-r", "src", &at]);
    let into = atoll.json(&["--json", "cp", "-r", "src/.", &at]);
    let out = atoll.json(&["--json", "cp", "-r", &at, "out"]);

    assert_eq!((silent.stdout.as_slice(), silent.stderr.as_str()), (&b""[..], ""));
    for told in [into, out] {
        assert_eq!(
            (&told["entries"], &told["bytes"], &told["left_out"]),
            (&1.into(), &5.into(), &0.into()),
            "{told}"
        );
    }
}
