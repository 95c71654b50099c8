//! Directories as archives, with the rights of the sandbox's user.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

use atoll_agent_protocol::{
    message::{
        Failure, FailureKind, Nothing, OfPath, Upload, request::Call, response::Answer,
        upload::Part,
    },
    mux::Stream,
};

use crate::support::{Agent, GUEST, answer, eventually, is_root, within};

fn at(path: &str) -> OfPath {
    OfPath { path: path.to_owned() }
}

/// A file in an archive, and, with `end`, the archive's end.
fn archive(name: &str, data: &[u8], end: bool) -> Vec<u8> {
    let mut block = vec![0; 512];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000640");
    put(124, format!("{:011o}", data.len()).as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().copied().map(u32::from).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend_from_slice(data);
    block.resize(block.len().next_multiple_of(512) + if end { 1024 } else { 0 }, 0);
    block
}

async fn send(stream: &Stream, data: Vec<u8>) {
    let upload = Upload { part: Some(Part::Chunk(data.into())) };
    // Refused early, it takes no more.
    let _ = stream.send(&upload).await;
}

impl Agent {
    /// What is packed, and whether its end was told.
    async fn pack(&self, path: &str) -> Result<(Vec<u8>, bool), Failure> {
        let stream = self.open(Call::Pack(at(path))).await;
        stream.finish();
        let first = within(answer(&stream)).await.expect("an answer")?;
        assert!(matches!(first, Answer::Entry(_)), "{first:?} begins an archive");
        let (mut data, mut whole) = (Vec::new(), false);
        while let Some(part) = within(answer(&stream)).await {
            match part? {
                Answer::Chunk(part) => data.extend_from_slice(&part),
                Answer::Done(_) => whole = true,
                other => panic!("{other:?} in an archive"),
            }
        }
        Ok((data, whole))
    }

    async fn unpack(&self, path: &str, archive: Vec<u8>) -> Result<(), Failure> {
        let stream = self.open(Call::Unpack(at(path))).await;
        send(&stream, archive).await;
        let _ = stream.send(&Upload { part: Some(Part::End(Nothing {})) }).await;
        stream.finish();
        within(answer(&stream)).await.expect("an answer").map(drop)
    }
}

#[tokio::test]
async fn what_the_guest_may_not_read_is_left_out() {
    if !is_root() {
        return;
    }
    let agent = Agent::with_user().await;
    let home = agent.home();
    fs::create_dir(home.join("d")).unwrap();
    fs::write(home.join("d/open"), "for all").unwrap();
    fs::write(home.join("d/secret"), "of the host").unwrap();
    fs::set_permissions(home.join("d/secret"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(home.join("d/closed")).unwrap();
    fs::write(home.join("d/closed/inner"), "of the host").unwrap();
    fs::set_permissions(home.join("d/closed"), fs::Permissions::from_mode(0o700)).unwrap();

    let (packed, whole) = agent.pack("d").await.unwrap();

    let text = String::from_utf8_lossy(&packed);
    assert!(whole && text.contains("for all"));
    assert!(!text.contains("of the host"));
    assert!(text.contains("secret (not readable)") && text.contains("closed (not readable)"));
}

#[tokio::test]
async fn what_is_unpacked_is_the_guests_and_where_it_may_write() {
    if !is_root() {
        return;
    }
    let agent = Agent::with_user().await;
    let closed = agent.home().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();

    agent.unpack("d", archive("sub/file", b"x", true)).await.unwrap();
    let refused = agent.unpack("closed", archive("file", b"x", true)).await.unwrap_err();

    let about = fs::metadata(agent.home().join("d/sub/file")).unwrap();
    assert_eq!((about.uid(), about.gid(), about.mode() & 0o7777), (GUEST.uid, GUEST.gid, 0o640));
    assert_eq!(refused.kind(), FailureKind::Denied, "{refused:?}");
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);
}

#[tokio::test]
async fn a_host_that_hangs_up_leaves_what_was_whole() {
    let agent = Agent::new().await;
    let stream = agent.open(Call::Unpack(at("d"))).await;
    send(&stream, archive("first", b"1", false)).await;
    send(&stream, archive("second", &vec![b'x'; 100_000], false)[..50_000].to_vec()).await;
    let d = agent.home().join("d");
    let names = || {
        let entries = fs::read_dir(&d).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    eventually("both have begun", || names().len() == 2).await;

    drop(stream);

    eventually("only what was whole is left", || names() == ["first"]).await;
}

#[tokio::test]
async fn hosts_that_do_not_read_on_hold_up_nobody() {
    let agent = Agent::new().await;
    fs::create_dir(agent.home().join("d")).unwrap();
    let large = fs::File::create(agent.home().join("d/large")).unwrap();
    large.set_len(1 << 29).unwrap();

    // More of them than there are threads for files.
    let mut stalled = Vec::new();
    for _ in 0..12 {
        let stream = agent.open(Call::Pack(at("d"))).await;
        stream.finish();
        assert!(matches!(within(answer(&stream)).await, Some(Ok(Answer::Entry(_)))));
        let waiting = agent.open(Call::Unpack(at("e"))).await;
        send(&waiting, archive("file", &[0; 5000], false)[..1000].to_vec()).await;
        stalled.push((stream, waiting));
    }

    for _ in 0..20 {
        let told = agent.ask(Call::Stat(at("d"))).await;
        assert!(matches!(told, Ok(Answer::Entry(_))), "{told:?}");
    }
    drop(stalled);
}

#[tokio::test]
async fn an_error_names_the_entry_and_what_is_done() {
    let agent = Agent::new().await;
    let whole = [archive("first", b"1", false), archive("../up", b"2", true)].concat();

    let failed = agent.unpack("d", whole).await.unwrap_err();

    assert_eq!(failed.kind(), FailureKind::Denied);
    let said = "../up: a name that leads upwards (entries unpacked before it: 1)";
    assert_eq!(failed.message, said);
}
