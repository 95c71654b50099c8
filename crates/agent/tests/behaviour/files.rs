//! Files, as the sandbox's user sees them.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

use atoll_agent_protocol::message::{
    Disk, Entry, Failure, FailureKind, FromTo, Nothing, OfPath, SetMode, Upload, request::Call,
    response::Answer, upload::Part,
};

use crate::support::{Agent, GUEST, answer, eventually, is_root, within};

fn at(path: &str) -> OfPath {
    OfPath { path: path.to_owned() }
}

fn from_to(from: &str, to: &str) -> FromTo {
    FromTo { from: from.to_owned(), to: to.to_owned() }
}

fn chunk(data: impl Into<bytes::Bytes>) -> Upload {
    Upload { part: Some(Part::Chunk(data.into())) }
}

impl Agent {
    async fn read(&self, path: &str) -> Result<Vec<u8>, Failure> {
        let stream = self.open(Call::ReadFile(at(path))).await;
        stream.finish();
        let mut data = Vec::new();
        let first = within(answer(&stream)).await.expect("an answer")?;
        let Answer::Entry(entry) = first else { panic!("{first:?} begins a file") };
        while let Some(part) = within(answer(&stream)).await {
            let Answer::Chunk(part) = part? else { panic!("no chunk") };
            data.extend_from_slice(&part);
        }
        assert_eq!(entry.size, data.len() as u64);
        Ok(data)
    }

    async fn write(&self, path: &str, data: &[u8]) -> Result<(), Failure> {
        let stream = self.open(Call::WriteFile(at(path))).await;
        for part in data.chunks(50_000) {
            // Refused early, it takes no more.
            if stream.send(&chunk(part.to_vec())).await.is_err() {
                break;
            }
        }
        let _ = stream.send(&Upload { part: Some(Part::End(Nothing {})) }).await;
        stream.finish();
        within(answer(&stream)).await.expect("an answer").map(drop)
    }

    async fn list(&self, path: &str) -> Result<(Vec<Entry>, bool), Failure> {
        let stream = self.open(Call::ListDirectory(at(path))).await;
        stream.finish();
        let mut entries = Vec::new();
        loop {
            match within(answer(&stream)).await.expect("an end")? {
                Answer::Entry(entry) => entries.push(entry),
                Answer::Done(done) => return Ok((entries, done.truncated)),
                other => panic!("{other:?} in a listing"),
            }
        }
    }

    async fn stat(&self, path: &str) -> Result<Entry, Failure> {
        match self.ask(Call::Stat(at(path))).await? {
            Answer::Entry(entry) => Ok(entry),
            other => panic!("{other:?} answers stat"),
        }
    }

    /// What is in the home directory, by name.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.home())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn what_is_written_is_read() {
    let agent = Agent::new().await;
    let large: Vec<u8> = (0..=250).cycle().take(3_000_000).collect();

    for (path, data) in [("empty", &b""[..]), ("a/b/small", b"x\0\xff"), ("large", &large)] {
        agent.write(path, data).await.unwrap();
        assert!(agent.read(path).await.unwrap() == data, "{path}");
        let mode = fs::metadata(agent.home().join(path)).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o644);
    }
    assert_eq!(agent.names(), ["a", "empty", "large"]);
}

#[tokio::test]
async fn an_existing_file_keeps_its_mode_and_a_link_its_target() {
    let agent = Agent::new().await;
    let (file, link) = (agent.home().join("file"), agent.home().join("link"));
    fs::create_dir(agent.home().join("d")).unwrap();
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    symlink("d/../file", &link).unwrap();

    agent.write("link", b"new").await.unwrap();

    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o750);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[tokio::test]
async fn an_upload_that_is_not_finished_changes_nothing() {
    let agent = Agent::new().await;
    fs::write(agent.home().join("file"), "old").unwrap();

    let finished = agent.open(Call::WriteFile(at("file"))).await;
    finished.send(&chunk("half")).await.unwrap();
    finished.finish();
    let failure = within(answer(&finished)).await.unwrap().unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Invalid);
    assert_eq!(agent.names(), ["file"], "nothing is left when it is told");

    let dropped = agent.open(Call::WriteFile(at("file"))).await;
    dropped.send(&chunk("half")).await.unwrap();
    eventually("it has begun", || agent.names().len() == 2).await;
    drop(dropped);
    eventually("nothing is left", || agent.names() == ["file"]).await;

    let hung_up = agent.connect();
    let stream = hung_up.open().await.unwrap();
    let call = Some(Call::WriteFile(at("file")));
    stream.send(&atoll_agent_protocol::message::Request { call }).await.unwrap();
    stream.send(&chunk("half")).await.unwrap();
    eventually("it has begun", || agent.names().len() == 2).await;
    hung_up.close();
    eventually("nothing is left", || agent.names() == ["file"]).await;

    assert_eq!(fs::read(agent.home().join("file")).unwrap(), b"old");
}

#[tokio::test]
async fn only_regular_files_are_read_and_replaced() {
    let agent = Agent::new().await;
    agent.shell("mkdir folder; mkfifo pipe; ln -s pipe to-pipe; echo x > file").await;

    for path in ["folder", "pipe", "to-pipe", ".", "/dev/zero", "/proc/self/fd/0"] {
        let failure = agent.read(path).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Invalid, "{path}: {}", failure.message);
    }
    for path in ["folder", "pipe", "to-pipe", "file/below"] {
        let failure = agent.write(path, b"x").await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Invalid, "{path}: {}", failure.message);
    }
    for (from, to) in [("folder", "x"), ("pipe", "x"), ("file", "folder"), ("file", "pipe")] {
        let failure = agent.ask(Call::Copy(from_to(from, to))).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Invalid, "{from}: {}", failure.message);
    }
    assert_eq!(agent.names(), ["file", "folder", "pipe", "to-pipe"]);
}

#[tokio::test]
async fn paths_without_meaning_are_invalid_and_missing_ones_not_found() {
    let agent = Agent::new().await;
    let calls = |path: &str| {
        [
            Call::ReadFile(at(path)),
            Call::ListDirectory(at(path)),
            Call::Stat(at(path)),
            Call::Rename(from_to(path, "x")),
            Call::Copy(from_to(path, "x")),
            Call::Remove(at(path)),
            Call::SetMode(SetMode { path: path.to_owned(), mode: 0o600 }),
        ]
    };

    for (path, kind) in [
        ("", FailureKind::Invalid),
        ("a\0b", FailureKind::Invalid),
        ("missing", FailureKind::NotFound),
        ("missing/deeper", FailureKind::NotFound),
    ] {
        for call in calls(path) {
            let failure = agent.ask(call.clone()).await.unwrap_err();
            assert_eq!(failure.kind(), kind, "{call:?}: {}", failure.message);
        }
    }
    let mode = SetMode { path: ".".to_owned(), mode: 0o1000 };
    let failure = agent.ask(Call::SetMode(mode)).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Invalid);
}

#[tokio::test]
async fn a_file_that_grows_is_read_to_where_it_ended() {
    let agent = Agent::new().await;
    let path = agent.home().join("log");
    fs::write(&path, vec![b'a'; 2 << 20]).unwrap();

    let stream = agent.open(Call::ReadFile(at("log"))).await;
    let first = within(answer(&stream)).await.unwrap().unwrap();
    assert!(matches!(first, Answer::Entry(entry) if entry.size == 2 << 20));
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &[b'b'; 1000]))
        .unwrap();
    let mut length = 0;
    while let Some(Ok(Answer::Chunk(data))) = within(answer(&stream)).await {
        assert!(data.iter().all(|byte| *byte == b'a'));
        length += data.len();
    }

    assert_eq!(length, 2 << 20);
}

#[tokio::test]
async fn directories_are_listed_by_name() {
    let agent = Agent::new().await;
    agent.shell("mkdir -p d/sub; cd d; printf 123 > b; : > .hidden; ln -s b a").await;

    let (entries, truncated) = agent.list("d").await.unwrap();

    let names: Vec<_> = entries.iter().map(|entry| entry.name.as_slice()).collect();
    assert_eq!(names, [&b".hidden"[..], b"a", b"b", b"sub"]);
    assert_eq!(entries[1].target.as_deref(), Some(&b"b"[..]));
    assert_eq!(entries[2], agent.stat("d/b").await.unwrap());
    assert_eq!(entries[2].path, agent.home().join("d/b").into_os_string().into_encoded_bytes());
    assert!(!truncated);
    let failure = agent.list("d/b").await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Invalid);
    assert!(!agent.list("/").await.unwrap().0.is_empty());
}

#[tokio::test]
async fn a_listing_too_long_is_cut_and_says_so() {
    let agent = Agent::new().await;
    fs::create_dir(agent.home().join("many")).unwrap();
    for number in 0..10_005 {
        fs::write(agent.home().join(format!("many/{number:05}")), "").unwrap();
    }

    let (entries, truncated) = agent.list("many").await.unwrap();

    assert!(truncated);
    assert_eq!(entries.len(), 10_000);
    assert_eq!(entries[9_999].name, b"09999");
}

#[tokio::test]
async fn directories_files_and_modes_are_changed() {
    let agent = Agent::new().await;

    agent.ask(Call::MakeDirectory(at("a/b"))).await.unwrap();
    agent.ask(Call::MakeDirectory(at("a/b"))).await.unwrap();
    agent.write("a/one", b"1").await.unwrap();
    agent.write("a/two", b"2").await.unwrap();
    agent.ask(Call::Rename(from_to("a/one", "a/two"))).await.unwrap();
    let mode = SetMode { path: "a/two".to_owned(), mode: 0o751 };
    agent.ask(Call::SetMode(mode)).await.unwrap();
    agent.ask(Call::Copy(from_to("a/two", "new/three"))).await.unwrap();
    agent.ask(Call::Rename(from_to("a", "moved"))).await.unwrap();

    assert_eq!(agent.names(), ["moved", "new"]);
    assert_eq!(agent.read("moved/two").await.unwrap(), b"1");
    let copy = agent.stat("new/three").await.unwrap();
    assert_eq!((copy.mode, copy.size), (0o100_751, 1));
}

#[tokio::test]
async fn a_file_is_moved_to_another_file_system() {
    if !is_root() {
        return;
    }
    let agent = Agent::new().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = Mounted::tmpfs(&elsewhere.path().join("other"), "1m");
    agent.write("file", b"content").await.unwrap();
    let goal = elsewhere.0.join("file");

    agent.ask(Call::Rename(from_to("file", goal.to_str().unwrap()))).await.unwrap();

    assert_eq!(fs::read(goal).unwrap(), b"content");
    assert_eq!(agent.names(), [""; 0]);
}

#[tokio::test]
async fn removing_takes_all_but_what_links_lead_to() {
    let agent = Agent::new().await;
    agent
        .shell(
            "mkdir -p d/e/f closed/in kept; : > d/a; mkfifo d/e/p; ln -s ../kept d/l; \
             : > kept/file; ln -s kept link; : > closed/in/x; chmod 0 closed/in closed",
        )
        .await;

    for path in ["d", "link", "closed"] {
        agent.ask(Call::Remove(at(path))).await.unwrap();
    }

    assert_eq!(agent.names(), ["kept"]);
    assert!(agent.home().join("kept/file").exists());
}

#[tokio::test]
async fn the_home_and_what_it_lies_in_are_not_removed_by_any_name() {
    let agent = Agent::new().await;
    agent.shell("mkdir kept; : > kept/file; ln -s ../.. up").await;
    let home = agent.home().to_str().unwrap().to_owned();
    let (parent, name) = home.rsplit_once('/').unwrap();
    let around = format!("kept/../../{name}");

    let dots = ["/", "//", ".", "./", "..", "kept/.", "kept/..", "kept/../..", "up/.."];
    for path in dots.into_iter().chain([home.as_str(), parent, around.as_str()]) {
        let failure = agent.ask(Call::Remove(at(path))).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Invalid, "{path}: {}", failure.message);
    }

    assert_eq!(agent.names(), ["kept", "up"]);
    assert!(agent.home().join("kept/file").exists());
}

#[tokio::test]
async fn removing_a_very_deep_and_a_very_wide_tree_works() {
    let agent = Agent::new().await;
    let deep = "/d".repeat(1000);
    for level in 0..10 {
        // Paths are short, trees need not be: each is put on top of the last.
        agent.ask(Call::MakeDirectory(at(&format!("new{deep}")))).await.unwrap();
        if level > 0 {
            let bottom = format!("new{deep}/d");
            agent.ask(Call::Rename(from_to("top", &bottom))).await.unwrap();
        }
        agent.ask(Call::Rename(from_to("new", "top"))).await.unwrap();
    }
    for number in 0..3000 {
        fs::create_dir_all(agent.home().join(format!("wide/{number}"))).unwrap();
        fs::write(agent.home().join(format!("wide/{number}/file")), "").unwrap();
    }

    agent.ask(Call::Remove(at("top"))).await.unwrap();
    agent.ask(Call::Remove(at("wide"))).await.unwrap();

    assert_eq!(agent.names(), [""; 0]);
}

#[tokio::test]
async fn files_are_used_with_the_rights_of_the_guest() {
    if !is_root() {
        return;
    }
    let agent = Agent::with_user().await;
    let secret = agent.home().join("secret");
    fs::write(&secret, "of root").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();

    agent.write("made/by/guest", b"x").await.unwrap();
    let read = agent.read("secret").await.unwrap_err();
    let write = agent.write("/etc/atoll-test-must-not-exist", b"x").await.unwrap_err();
    let mode = SetMode { path: "secret".to_owned(), mode: 0o666 };
    let mode = agent.ask(Call::SetMode(mode)).await.unwrap_err();

    let overwrite = agent.write("secret", b"x").await.unwrap_err();

    for failure in [read, write, mode, overwrite] {
        assert_eq!(failure.kind(), FailureKind::Denied, "{}", failure.message);
    }
    for path in ["made", "made/by", "made/by/guest"] {
        let owner = fs::metadata(agent.home().join(path)).unwrap();
        assert_eq!((owner.uid(), owner.gid()), (GUEST.uid, GUEST.gid), "{path}");
    }
    assert_eq!(agent.shell("echo on").await.stdout, b"on\n");
}

#[tokio::test]
async fn a_guest_cannot_lead_file_calls_to_the_agents_own_descriptors() {
    let agent = Agent::new().await;
    agent.shell("ln -s /proc/self/root/etc up; ln -s /proc/self/fd fds").await;

    for path in ["up/passwd", "fds/0", "/proc/self/exe", "/proc/thread-self/root/etc"] {
        let failure = agent.read(path).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Invalid, "{path}: {}", failure.message);
    }
}

#[tokio::test]
async fn the_disk_has_a_size() {
    let agent = Agent::new().await;

    let answer = agent.ask(Call::Disk(Nothing {})).await.unwrap();

    let Answer::Disk(Disk { used, total }) = answer else { panic!("{answer:?}") };
    assert!(total > 0 && used <= total);
}

#[tokio::test]
async fn no_room_is_exhausted_and_leaves_the_old_file() {
    if !is_root() {
        return;
    }
    let agent = Agent::new().await;
    let small = Mounted::tmpfs(&agent.home().join("small"), "256k");
    fs::write(small.0.join("file"), "old").unwrap();

    let failure = agent.write("small/file", &vec![1; 1 << 20]).await.unwrap_err();

    assert_eq!(failure.kind(), FailureKind::Exhausted, "{}", failure.message);
    let left = fs::read_dir(&small.0).unwrap().count();
    assert_eq!(left, 1, "nothing is left when it is told");
    assert_eq!(agent.read("small/file").await.unwrap(), b"old");
}

/// A small file system, for as long as this lives.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn tmpfs(at: &std::path::Path, size: &str) -> Self {
        fs::create_dir(at).unwrap();
        let data = std::ffi::CString::new(format!("size={size}")).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("none", at, "tmpfs", flags, Some(data.as_c_str())).unwrap();
        Self(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}
