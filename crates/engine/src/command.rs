//! One process to start, and how it ended.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use atoll_types::{execution::Reason, id::ProcessId, limits::LimitHit, process::TerminalSize};

use crate::Offsets;

/// The most output a command may be allowed, of each stream.
pub const MAX_OUTPUT: u64 = 64 << 20;

/// The most rows of a terminal, and the most columns.
pub const MAX_TERMINAL_SIDE: u16 = 10_000;

/// How much of a terminal's output is kept at least.
pub const SCROLLBACK: u64 = 1 << 20;

/// A program to run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program, looked up in the sandbox's `PATH` unless it has a slash, and its arguments.
    pub argv: Vec<String>,
    /// On top of the sandbox's own variables.
    pub env: BTreeMap<String, String>,
    /// Absolute, or relative to the home directory, which is also the default.
    pub cwd: Option<String>,
    /// Keep standard input open for writing; otherwise it is empty.
    pub stdin: bool,
    /// Ends it and every descendant after this long.
    pub timeout: Option<Duration>,
    /// Ends it and every descendant after so much processor time of the sandbox.
    pub cpu_time: Option<Duration>,
    /// Ends it once either stream is longer; at most, and by default, [`MAX_OUTPUT`]. Not with a
    /// terminal, which may write for ever.
    pub output: Option<u64>,
    /// Gives it a terminal of this size, from 1 by 1 to [`MAX_TERMINAL_SIDE`] squared, instead of
    /// pipes; see [`Sandbox::start`](crate::Sandbox::start).
    pub terminal: Option<TerminalSize>,
}

/// A process that was started, running or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    pub id: ProcessId,
    pub argv: Vec<String>,
    pub started: SystemTime,
    /// What its terminal was last set to from outside, if it has one.
    pub terminal: Option<TerminalSize>,
    /// Bytes of each stream so far, whether they are still kept or not: where a reader is who has
    /// read them all.
    pub written: Offsets,
    /// None while it runs.
    pub outcome: Option<Outcome>,
}

/// How a process ended. Limits and memory are judged by what the host saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub reason: Reason,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub duration: Duration,
    /// Processor time of the sandbox while it ran; zero if this host cannot tell.
    pub cpu_time: Duration,
    /// The most memory the sandbox was seen to hold while it ran.
    pub peak_memory: Option<u64>,
    /// Bytes of output were dropped.
    pub truncated: bool,
    pub limits_hit: Vec<LimitHit>,
    /// Whether the sandbox can go on.
    pub sandbox_survived: bool,
}

impl Command {
    /// A command with nothing but its words.
    pub fn new<I, S>(argv: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
            stdin: false,
            timeout: None,
            cpu_time: None,
            output: None,
            terminal: None,
        }
    }

    /// A line for the sandbox's shell.
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new(["/bin/sh".to_owned(), "-c".to_owned(), line.into()])
    }

    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    #[must_use]
    pub fn with_terminal(mut self, rows: u16, columns: u16) -> Self {
        self.terminal = Some(TerminalSize { rows, columns });
        self
    }

    #[must_use]
    pub fn with_stdin(mut self) -> Self {
        self.stdin = true;
        self
    }
}

impl Outcome {
    /// Exit code 0 and nothing else.
    pub fn succeeded(&self) -> bool {
        self.reason == Reason::Exited && self.exit_code == Some(0)
    }
}
