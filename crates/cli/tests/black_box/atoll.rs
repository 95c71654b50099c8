//! `atoll` with a data directory, and a server if one was needed, that go when this is dropped.

use std::{
    io::{Read as _, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// Long enough for a busy machine: only a hang takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct Atoll {
    home: TempDir,
    environment: Vec<(String, String)>,
}

/// What a command left.
#[derive(Debug)]
pub(crate) struct Ended {
    /// As a shell shows it.
    pub(crate) code: i32,
    /// What ended the command itself, if it was a signal.
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Atoll {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), environment: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A directory for the files of a case; commands run in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home.path())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.home.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.command(arguments).spawn().unwrap())
    }

    /// Runs a command that reads `input`.
    pub(crate) fn feed(&self, arguments: &[&str], input: &[u8]) -> Ended {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeding = std::thread::spawn(move || stdin.write_all(&input));
        let ended = finish(child);
        // A program need not read all it is given.
        let _ = feeding.join().unwrap();
        ended
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.text()
    }

    /// Runs a command that must succeed, and returns its JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }

    /// Makes a session and returns its id.
    pub(crate) fn session(&self, arguments: &[&str]) -> String {
        let all = [&["session", "create", "--quiet"], arguments].concat();
        self.ok(&all).trim().to_owned()
    }

    /// The ids of the sessions there are.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let sessions = self.json(&["session", "ls"]);
        let ids = sessions.as_array().unwrap().iter();
        ids.map(|session| session["session_id"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Atoll {
    fn drop(&mut self) {
        // A case that failed must not leave a server behind, nor its sandboxes.
        let _ = self.command(&["daemon", "stop", "--quiet"]).spawn().map(finish);
    }
}

impl Ended {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }
}

/// A command that still runs; killed when dropped.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    /// Waits until its standard output has said this much.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let stdout = self.child().stdout.as_mut().unwrap();
        let mut byte = [0];
        while stdout.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    pub(crate) fn signal(&mut self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(self.child());
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn finish(mut self) -> Ended {
        finish(self.0.take().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads a command's output and waits for its end; one that hangs is killed, and the case fails.
pub(crate) fn finish(mut child: Child) -> Ended {
    let read = |mut from: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            from.read_to_end(&mut all).map(|_| all)
        })
    };
    let stdout = read(Box::new(child.stdout.take().unwrap()));
    let stderr = read(Box::new(child.stderr.take().unwrap()));
    let status = wait(&mut child);
    let stdout = stdout.join().unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&stderr.join().unwrap().unwrap()).into_owned();
    let signal = status.signal();
    let code = status.code().unwrap_or_else(|| 128 + signal.unwrap_or_default());
    Ended { code, signal, stdout, stderr }
}

fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the command did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The names in a directory.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}
