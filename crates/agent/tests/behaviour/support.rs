//! An agent of one's own, and the calls a host makes.

use std::{
    io::Write as _,
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use atoll_agent_protocol::{
    message::{
        Attach, Boot, Ended, Failure, OfProcess, Request, Response, Start, User, request::Call,
        response::Answer,
    },
    mux::{Mux, Stream},
};
use prost::Message as _;
use tempfile::TempDir;

/// The longest any test waits for anything.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) const GUEST: User = User { uid: 1000, gid: 1000 };

pub(crate) struct Agent {
    pub(crate) child: Child,
    directory: TempDir,
    pub(crate) mux: Mux,
}

/// What a process wrote and how it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) ended: Ended,
}

impl Agent {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// An agent whose guests are of another user; the tests are root's then.
    pub(crate) async fn with_user() -> Self {
        Self::with(|boot| boot.user = Some(GUEST)).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Boot)) -> Self {
        Self::build(None, &[], change).await
    }

    /// An agent that has one more descriptor, number 5.
    pub(crate) async fn with_descriptor(fd: OwnedFd, change: impl FnOnce(&mut Boot)) -> Self {
        Self::build(Some(fd), &[], change).await
    }

    /// An agent that is the first process of its own pid namespace, with guests of another user.
    pub(crate) async fn first() -> Self {
        let prefix = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
        Self::build(None, &prefix, |boot| boot.user = Some(GUEST)).await
    }

    #[expect(clippy::unused_async, reason = "the connection needs the runtime to be there")]
    async fn build(fd: Option<OwnedFd>, prefix: &[&str], change: impl FnOnce(&mut Boot)) -> Self {
        // In memory where that is possible: some tests make many files.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let home = directory.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut boot = Boot {
            listener_fd: 4,
            home: home.to_str().unwrap().to_owned(),
            disk: home.to_str().unwrap().to_owned(),
            env: vec!["PATH=/usr/bin:/bin".to_owned(), "KEPT=boot".to_owned()],
            ..Boot::default()
        };
        change(&mut boot);
        if let Some(User { uid, gid }) = boot.user {
            use std::os::unix::fs::{PermissionsExt as _, chown};
            chown(&home, Some(uid), Some(gid)).unwrap();
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(directory.path(), open).unwrap();
        }
        let (reader, mut writer) = std::io::pipe().unwrap();
        let words = [prefix, &[env!("CARGO_BIN_EXE_atoll-agent")]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("SECRET", "of the host").stdin(Stdio::null());
        let mut fds = vec![OwnedFd::from(reader), OwnedFd::from(listener)];
        fds.extend(fd);
        let child = crate::unsafe_spawn::spawn(command, fds);
        writer.write_all(&boot.encode_to_vec()).unwrap();
        drop(writer);
        let mux = connect(&socket);
        Self { child, directory, mux }
    }

    /// Another host's connection.
    pub(crate) fn connect(&self) -> Mux {
        connect(&self.socket())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) async fn open(&self, call: Call) -> Stream {
        let stream = self.mux.open().await.unwrap();
        stream.send(&Request { call: Some(call) }).await.unwrap();
        stream
    }

    /// A call that has one answer.
    pub(crate) async fn ask(&self, call: Call) -> Result<Answer, Failure> {
        let stream = self.open(call).await;
        stream.finish();
        within(answer(&stream)).await.expect("an answer")
    }

    pub(crate) async fn start(&self, start: Start) -> Result<u64, Failure> {
        match self.ask(Call::Start(start)).await? {
            Answer::Started(OfProcess { process }) => Ok(process),
            other => panic!("{other:?} answers a start"),
        }
    }

    /// Reads all output from offset 0 and the end.
    pub(crate) async fn finish(&self, process: u64) -> Finished {
        self.finish_from(process, 0, 0).await
    }

    /// Waits for the end and reads nothing.
    pub(crate) async fn wait(&self, process: u64) -> Ended {
        self.finish_from(process, u64::MAX, u64::MAX).await.ended
    }

    pub(crate) async fn finish_from(&self, process: u64, stdout: u64, stderr: u64) -> Finished {
        let stream = self.open(Call::Attach(Attach { process, stdout, stderr })).await;
        stream.finish();
        within(async {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            loop {
                match answer(&stream).await.expect("the end comes last").expect("no failure") {
                    Answer::Output(output) if output.stream == 1 => {
                        assert_eq!(output.offset, stdout + out.len() as u64);
                        out.extend_from_slice(&output.data);
                    }
                    Answer::Output(output) => {
                        assert_eq!(output.offset, stderr + err.len() as u64);
                        err.extend_from_slice(&output.data);
                    }
                    Answer::Ended(ended) => break Finished { stdout: out, stderr: err, ended },
                    other => panic!("{other:?} among output"),
                }
            }
        })
        .await
    }

    pub(crate) async fn run(&self, start: Start) -> Finished {
        let process = self.start(start).await.expect("it starts");
        self.finish(process).await
    }

    pub(crate) async fn shell(&self, line: &str) -> Finished {
        self.run(shell(line)).await
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command of these words.
pub(crate) fn command(argv: &[&str]) -> Start {
    Start {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        output: 1 << 20,
        ..Start::default()
    }
}

pub(crate) fn shell(line: &str) -> Start {
    command(&["/bin/sh", "-c", line])
}

/// The next answer; none at the end of the stream.
pub(crate) async fn answer(stream: &Stream) -> Option<Result<Answer, Failure>> {
    let response: Option<Response> = stream.recv().await.expect("the stream goes on");
    match response?.answer.expect("an answer this side knows") {
        Answer::Error(failure) => Some(Err(failure)),
        answer => Some(Ok(answer)),
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

/// Waits for something that happens beside us.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < DEADLINE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process runs; one that waits to be waited for does not.
pub(crate) fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| stat.rsplit(')').next().map(|rest| !rest.trim_start().starts_with('Z')))
        .unwrap_or(false)
}

pub(crate) fn read_number(path: &Path) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Only root can make processes of other users. Elsewhere those tests say nothing, and fail where
/// `ATOLL_REQUIRE_ENGINES` says that they must be run.
#[expect(clippy::disallowed_methods, reason = "tests have no settings of their own")]
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    let required = std::env::var_os("ATOLL_REQUIRE_ENGINES").is_some();
    assert!(root || !required, "ATOLL_REQUIRE_ENGINES is set, and this test needs root");
    root
}

fn connect(socket: &Path) -> Mux {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_nonblocking(true).unwrap();
    Mux::client(tokio::net::UnixStream::from_std(stream).unwrap())
}
