//! A handle to one sandbox.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use atoll_types::{
    id::{ProcessId, SandboxId},
    process::{Stream, TerminalSize},
};
use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::{Command, Files, Outcome, Ports, Process, Result};

/// An isolated place where commands run and files are kept.
///
/// Dropping a handle changes nothing: only [`destroy`](Self::destroy) ends a sandbox. After its
/// end every call is [`Lost`](crate::ErrorKind::Lost), except `destroy`.
#[async_trait]
pub trait Sandbox: fmt::Debug + Send + Sync {
    fn id(&self) -> &SandboxId;

    /// Starts a process and returns at once.
    ///
    /// - It has descriptors 0, 1 and 2, the sandbox's variables and the command's, and no others.
    /// - A program that is not there is [`NotFound`](crate::ErrorKind::NotFound); one that may not
    ///   be run, or a working directory that is none, is [`Invalid`](crate::ErrorKind::Invalid).
    /// - Time limits hold whether or not anyone is attached.
    /// - What it started and left behind lives until the sandbox ends, unless a limit or
    ///   [`kill`](Self::kill) ended the process: then its descendants end with it, also those that
    ///   left its session and its parent.
    /// - Dropping the future may leave the process running.
    ///
    /// With a [terminal](Command::terminal):
    ///
    /// - It leads a session whose controlling terminal is its three descriptors, of that size and
    ///   of the guests' user; `TERM` is `xterm-256color` unless a variable says otherwise. No guest
    ///   gets hold of the other end.
    /// - All it writes is one stream, `stdout`, without a limit: the last [`SCROLLBACK`] bytes are
    ///   kept. Its input is open.
    /// - Keys such as `^C` act as at any terminal: on the foreground group, while the terminal's
    ///   mode says so.
    /// - When it ends the terminal is hung up: the foreground group gets `SIGHUP`, what lives on
    ///   has no terminal.
    /// - A size that is none, or an output limit, is [`Invalid`](crate::ErrorKind::Invalid).
    ///
    /// [`SCROLLBACK`]: crate::SCROLLBACK
    async fn start(&self, command: Command) -> Result<ProcessId>;

    /// The process's output from these offsets on, then its end.
    ///
    /// - Any number of readers, at any time, also after its end and from another daemon; the
    ///   output of processes ended long ago may be [`NotFound`](crate::ErrorKind::NotFound).
    /// - Each stream's bytes come in order, none twice, none missing.
    /// - [`Event::Ended`] is last, and comes when the process exits, not when its output is closed.
    /// - A reader that stops reading holds up neither the process nor other readers.
    /// - Of a terminal, what is no longer kept is left out, which the next offset shows; a process
    ///   there waits for its fastest reader, up to ten seconds, so that one who keeps reading
    ///   misses nothing.
    async fn attach(&self, process: ProcessId, from: Offsets) -> Result<Events>;

    /// Writes to the process's standard input; waits while the process does not read.
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) if it was not kept open or is closed.
    async fn write_stdin(&self, process: ProcessId, data: Bytes) -> Result<()>;

    /// Ends the process's standard input. Of one that is closed: does nothing.
    ///
    /// At a terminal this types what ends input there, `^D` as a rule, behind what was written
    /// before. What that means is up to whoever reads it, and more may be written.
    async fn close_stdin(&self, process: ProcessId) -> Result<()>;

    /// Sets the size of a process's terminal; its foreground group gets `SIGWINCH` if it changed.
    ///
    /// A size that is none, or a process without a terminal, is
    /// [`Invalid`](crate::ErrorKind::Invalid); one that has ended is
    /// [`NotFound`](crate::ErrorKind::NotFound).
    async fn resize(&self, process: ProcessId, size: TerminalSize) -> Result<()>;

    /// Sends a signal to the process, not to its descendants.
    ///
    /// One that has ended is [`NotFound`](crate::ErrorKind::NotFound); no other process is ever
    /// hit in its place.
    async fn signal(&self, process: ProcessId, signal: i32) -> Result<()>;

    /// Ends the process and every descendant, as [`Reason::Cancelled`](crate::Reason::Cancelled).
    ///
    /// Of one that has ended: ends the descendants it left.
    async fn kill(&self, process: ProcessId) -> Result<()>;

    /// The processes started here, oldest first; those that ended long ago may be left out.
    async fn processes(&self) -> Result<Vec<Process>>;

    /// The sandbox's files, with the rights of what runs in it.
    fn files(&self) -> &dyn Files;

    /// The sandbox's TCP ports; none if its loopback is not its own, for then its ports would be
    /// the host's.
    fn ports(&self) -> Option<&dyn Ports>;

    /// What the sandbox uses now, as the host sees it.
    async fn usage(&self) -> Result<Usage>;

    /// Returns when the sandbox has ended, whoever ended it.
    async fn ended(&self);

    /// Ends the sandbox, as [`Engine::destroy`](crate::Engine::destroy) does.
    ///
    /// A process that was running ends as [`Reason::Lost`](crate::Reason::Lost).
    async fn destroy(&self) -> Result<()>;
}

/// Where to begin reading a process's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offsets {
    pub stdout: u64,
    pub stderr: u64,
}

/// What a process wrote, then how it ended. An error is final.
pub type Events = BoxStream<'static, Result<Event>>;

/// One thing that happened to a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Output { stream: Stream, offset: u64, data: Bytes },
    Ended(Outcome),
}

/// What a sandbox uses; none of what this host cannot tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_time: Option<Duration>,
    pub memory: Option<u64>,
    pub peak_memory: Option<u64>,
    pub pids: Option<u64>,
    pub disk_used: Option<u64>,
    pub disk_total: Option<u64>,
}
