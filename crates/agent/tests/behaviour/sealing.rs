//! What a guest has, and what it has not.

use atoll_agent_protocol::message::{Access, FailureKind, OfPath, Rlimit, request::Call};

use crate::support::{Agent, GUEST, command, is_root, shell};

#[tokio::test]
async fn a_guest_has_three_descriptors() {
    let agent = Agent::new().await;

    // The fourth is the one `ls` reads the directory with.
    let finished = agent.run(command(&["/bin/ls", "/proc/self/fd"])).await;

    assert_eq!(finished.stdout, b"0\n1\n2\n3\n");
}

#[tokio::test]
async fn a_guest_has_its_own_session_and_the_default_signals() {
    let agent = Agent::new().await;

    let status = agent.run(command(&["/bin/cat", "/proc/self/status", "/proc/self/stat"])).await;
    let umask = agent.shell("umask").await;

    let text = String::from_utf8(status.stdout).unwrap();
    for set in ["SigBlk:\t", "SigIgn:\t", "SigCgt:\t"] {
        let line = text.lines().find_map(|line| line.strip_prefix(set));
        assert_eq!(line, Some("0000000000000000"), "{set}");
    }
    let fields: Vec<_> = text.lines().last().unwrap().split(' ').collect();
    assert_eq!(fields[0], fields[5], "it leads its session");
    assert_eq!(umask.stdout, b"0022\n");
}

#[tokio::test]
async fn a_guest_of_another_user_has_its_ids_and_no_capability() {
    if !is_root() {
        return;
    }
    let agent = Agent::with_user().await;

    let finished = agent.run(command(&["/bin/cat", "/proc/self/status"])).await;

    let text = String::from_utf8(finished.stdout).unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(field("Uid:"), "1000 1000 1000 1000");
    assert_eq!(field("Gid:"), "1000 1000 1000 1000");
    assert_eq!(field("Groups:"), "");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), "1");
}

#[tokio::test]
async fn a_guest_of_another_user_can_open_its_own_streams() {
    if !is_root() {
        return;
    }
    let agent = Agent::with_user().await;

    let line = "echo out > /proc/self/fd/1; echo err > /proc/self/fd/2; cat /proc/self/fd/0";
    let finished = agent.shell(line).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();

    let exit_code = finished.ended.exit_code;
    assert_eq!((finished.stdout, finished.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
    assert_eq!(exit_code, Some(0));
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    let ids: Vec<_> = ids.split_ascii_whitespace().collect();
    assert_eq!(ids, ["0"; 4], "the agent is itself again");
}

#[tokio::test]
async fn a_guest_of_another_user_cannot_touch_what_keeps_it() {
    if !is_root() {
        return;
    }
    let agent = Agent::with_user().await;
    let pid = agent.pid();
    let line = format!(
        "for p in $PPID {pid}; do kill -9 $p 2>/dev/null && echo killed; \
         cat /proc/$p/environ 2>/dev/null && echo read; \
         ls /proc/$p/fd >/dev/null 2>&1 && echo listed; done; echo tried"
    );

    let finished = agent.shell(&line).await;

    assert_eq!(finished.stdout, b"tried\n");
    assert_eq!(agent.shell("echo on").await.stdout, b"on\n");
}

#[tokio::test]
async fn limits_hold_for_guests() {
    let limit = Rlimit { resource: 7, value: 64 };
    let agent = Agent::with(|boot| boot.rlimits = vec![limit]).await;

    let finished = agent.shell("ulimit -n; ulimit -Hn").await;

    assert_eq!(finished.stdout, b"64\n64\n");
}

#[tokio::test]
async fn a_filter_is_in_force_when_the_program_begins() {
    let agent = Agent::with(|boot| boot.seccomp = Some(refuse_uname())).await;

    let finished = agent.shell("uname; grep Seccomp: /proc/self/status").await;

    assert_eq!(finished.stdout, b"Seccomp:\t2\n");
}

#[tokio::test]
async fn a_broken_seal_keeps_the_program_from_starting() {
    let agent = Agent::with(|boot| boot.seccomp = Some(vec![1, 2, 3])).await;

    let failure = agent.start(shell("touch ran")).await.unwrap_err();

    assert_eq!(failure.kind(), FailureKind::Internal);
    assert!(!agent.home().join("ran").exists());
}

#[tokio::test]
async fn every_guest_joins_the_control_groups() {
    // Any file that can be written stands for `cgroup.procs`.
    let group = tempfile::NamedTempFile::new().unwrap();
    let fd = group.reopen().unwrap();
    let agent = Agent::with_descriptor(fd.into(), |boot| boot.cgroup_fds = vec![5]).await;

    agent.shell("true").await;
    agent.shell("true").await;

    assert_eq!(std::fs::read(group.path()).unwrap(), b"00");
}

#[tokio::test]
async fn landlock_confines_guests_and_lets_them_signal_each_other() {
    let outside = tempfile::tempdir().unwrap();
    let note = outside.path().join("note");
    std::fs::write(&note, "secret").unwrap();
    let agent = Agent::with(|boot| {
        let access = |path: &str, writable| Access { path: path.to_owned(), writable };
        boot.landlock =
            ["/usr", "/bin", "/lib", "/lib64", "/etc"].map(|at| access(at, false)).into();
        boot.landlock.push(access("/dev/null", true));
        boot.landlock.push(access("/no/such/place", true));
        boot.landlock.push(access(&boot.home.clone(), true));
    })
    .await;
    let sleeper = agent.start(shell("echo $$ > pid; exec sleep 1000")).await.unwrap();
    let path = agent.home().join("pid");
    crate::support::eventually("it runs", || crate::support::read_number(&path).is_some()).await;

    let read = agent.run(command(&["/bin/cat", note.to_str().unwrap()])).await;
    let call = Call::ReadFile(OfPath { path: note.to_str().unwrap().to_owned() });
    let asked = agent.ask(call).await.unwrap_err();
    let write = agent.shell("echo fine > file && cat file; kill $(cat pid)").await;
    let killed = agent.finish(sleeper).await;

    assert_eq!((read.stdout, read.ended.exit_code), (Vec::new(), Some(1)));
    assert_eq!((write.stdout, write.ended.exit_code), (b"fine\n".to_vec(), Some(0)));
    assert_eq!(killed.ended.signal, Some(15));
    assert_eq!(asked.kind(), FailureKind::Denied, "files are read under the same rules");
}

#[tokio::test]
async fn guests_are_who_the_tests_say() {
    if !is_root() {
        return;
    }
    let agent = Agent::with_user().await;

    let finished = agent.shell("id -u; id -g").await;

    assert_eq!(finished.stdout, format!("{}\n{}\n", GUEST.uid, GUEST.gid).into_bytes());
}

/// A filter that answers `uname` with EPERM and allows all else.
fn refuse_uname() -> Vec<u8> {
    let number = u32::try_from(libc::SYS_uname).unwrap();
    let filter = |code: u16, jump_true: u8, jump_false: u8, value: u32| {
        let mut bytes = code.to_le_bytes().to_vec();
        bytes.extend([jump_true, jump_false]);
        bytes.extend(value.to_le_bytes());
        bytes
    };
    [
        filter(0x20, 0, 0, 0),
        filter(0x15, 0, 1, number),
        filter(0x06, 0, 0, 0x0005_0001),
        filter(0x06, 0, 0, 0x7fff_0000),
    ]
    .concat()
}
