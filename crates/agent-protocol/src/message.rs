//! The messages between a host and the agent in a sandbox.
//!
//! Each call is one [stream](crate::mux::Stream): the host sends a [`Request`] and finishes its side
//! (after an upload: after its [`Upload`] parts), the agent answers with one or more [`Response`]s
//! and finishes its own. Content flows as [`Chunk`](response::Answer::Chunk)s or [`Upload`]s on the
//! same stream. A host that needs no more resets the stream; the agent then stops what only that
//! call wanted (a download, an upload not yet whole, an attachment, a connection), never a process.
//! Written by hand rather than generated: there is one schema, in one language, on both sides.

mod search;
mod watch;

pub use search::{Edit, EditFile, Edited, Glob, Grep, Match, Searched};
pub use watch::{Change, ChangeKind, Watch};

/// Grows when a message changes its meaning; told in [`Hello`].
pub const VERSION: u32 = 1;

/// How an agent is set up. Read from descriptor [`BOOT_FD`], or from a file, before anything else,
/// to its end.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Boot {
    /// A bound, listening unix socket on which hosts connect. Without meaning in a file.
    #[prost(int32, tag = "1")]
    pub listener_fd: i32,
    /// Write ends of `cgroup.procs` files that every guest joins before it is sealed.
    #[prost(int32, repeated, tag = "2")]
    pub cgroup_fds: Vec<i32>,
    /// Who guests are. None: whoever the agent is.
    #[prost(message, optional, tag = "3")]
    pub user: Option<User>,
    /// A compiled seccomp program (`struct sock_filter` values, little endian) for guests.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub seccomp: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "5")]
    pub rlimits: Vec<Rlimit>,
    /// Where relative paths start and commands run: absolute.
    #[prost(string, tag = "6")]
    pub home: String,
    /// `KEY=VALUE` of every guest.
    #[prost(string, repeated, tag = "7")]
    pub env: Vec<String>,
    /// Whose free space is the sandbox's disk: absolute.
    #[prost(string, tag = "8")]
    pub disk: String,
    /// Confine guests with Landlock to these places, if there are any.
    #[prost(message, repeated, tag = "9")]
    pub landlock: Vec<Access>,
    /// Numbers of processes below this are the agent's own, and the kernel gives none of them to
    /// guests: by them guests of the agent's user can be kept from naming its processes. 0: none.
    #[prost(int32, tag = "10")]
    pub own_pids: i32,
    /// How much rather guests are to be killed than the agent where both share their memory:
    /// their `oom_score_adj`.
    #[prost(int32, optional, tag = "15")]
    pub oom_score: Option<i32>,
}

/// Where an agent started as `atoll-agent serve DIRECTORY` finds its [`Boot`] in that directory.
pub const BOOT_FILE: &str = "boot";

/// Where such an agent makes its socket in that directory. Whoever may reach the directory may
/// connect.
pub const SOCKET_FILE: &str = "run/socket";

/// The descriptor an agent finds its [`Boot`] on.
pub const BOOT_FD: i32 = 3;

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct User {
    #[prost(uint32, tag = "1")]
    pub uid: u32,
    #[prost(uint32, tag = "2")]
    pub gid: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Rlimit {
    /// `RLIMIT_*`.
    #[prost(int32, tag = "1")]
    pub resource: i32,
    #[prost(uint64, tag = "2")]
    pub value: u64,
}

/// A place guests may use.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Access {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(bool, tag = "2")]
    pub writable: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    #[prost(
        oneof = "request::Call",
        tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 30, 31, 32, 33, 40, 41, 50, 51"
    )]
    pub call: Option<request::Call>,
}

pub mod request {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Call {
        #[prost(message, tag = "1")]
        Hello(super::Hello),
        /// Answered by `Started` or `Error`.
        #[prost(message, tag = "2")]
        Start(super::Start),
        /// Answered by `Output`s, then `Ended`.
        #[prost(message, tag = "3")]
        Attach(super::Attach),
        /// Answered by `Done` when the process has taken it all.
        #[prost(message, tag = "4")]
        WriteStdin(super::WriteStdin),
        #[prost(message, tag = "5")]
        CloseStdin(super::OfProcess),
        #[prost(message, tag = "6")]
        Signal(super::Signal),
        /// Ends a process and its descendants; `Done` when none is left.
        #[prost(message, tag = "7")]
        Kill(super::OfProcess),
        /// Answered by `Process`es, one message each, then the end of the stream.
        #[prost(message, tag = "8")]
        Processes(super::Nothing),
        /// Answered by `Entry` (the open file), then chunks.
        #[prost(message, tag = "9")]
        ReadFile(super::OfPath),
        /// Followed by chunks and then `WriteEnd`; a stream that ends without one leaves the old
        /// file. Answered by `Done` or `Error`.
        #[prost(message, tag = "10")]
        WriteFile(super::OfPath),
        /// Answered by `Entry`s by name, one message each, then `Done { truncated }`.
        #[prost(message, tag = "11")]
        ListDirectory(super::OfPath),
        #[prost(message, tag = "12")]
        Stat(super::OfPath),
        #[prost(message, tag = "13")]
        MakeDirectory(super::OfPath),
        #[prost(message, tag = "14")]
        Rename(super::FromTo),
        #[prost(message, tag = "15")]
        Copy(super::FromTo),
        #[prost(message, tag = "16")]
        Remove(super::OfPath),
        #[prost(message, tag = "17")]
        SetMode(super::SetMode),
        /// Answered by `Disk`.
        #[prost(message, tag = "18")]
        Disk(super::Nothing),
        /// Answered by `Entry` (what is packed), then chunks of a tar archive, then `Done`, without
        /// which it is not whole.
        #[prost(message, tag = "40")]
        Pack(super::OfPath),
        /// Followed by chunks of a tar archive and then `upload::End`. Answered by `Done` or `Error`.
        #[prost(message, tag = "41")]
        Unpack(super::OfPath),
        /// Connects to a port of the sandbox's loopback. Answered by `Done`, then chunks; followed
        /// by chunks too. Each side finishes its direction when there is no more to send.
        #[prost(message, tag = "50")]
        Connect(super::OfPort),
        /// Answered by `Ports`.
        #[prost(message, tag = "51")]
        Listening(super::Nothing),
        /// Answered as `Start`. A call of its own, so that an agent that knows no terminals refuses.
        #[prost(message, tag = "20")]
        StartTerminal(super::StartTerminal),
        #[prost(message, tag = "21")]
        Resize(super::Resize),
        /// Answered by `Done` once nothing more is missed, then `Change`s. Ends with the directory.
        #[prost(message, tag = "30")]
        Watch(super::Watch),
        /// Answered by `Entry`s, one message each, then `Done { truncated }`.
        #[prost(message, tag = "31")]
        Glob(super::Glob),
        /// Answered by `Match`es, one message each, then `Searched`.
        #[prost(message, tag = "32")]
        Grep(super::Grep),
        /// Answered by `Edited`.
        #[prost(message, tag = "33")]
        Edit(super::EditFile),
    }
}

/// What follows a `WriteFile` or an `Unpack` request; of a `Connect` request chunks only.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Upload {
    #[prost(oneof = "upload::Part", tags = "1, 2")]
    pub part: Option<upload::Part>,
}

pub mod upload {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Part {
        #[prost(bytes = "bytes", tag = "1")]
        Chunk(bytes::Bytes),
        /// All of it was sent: put it in place.
        #[prost(message, tag = "2")]
        End(super::Nothing),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    #[prost(
        oneof = "response::Answer",
        tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 30, 32, 33, 34, 50"
    )]
    pub answer: Option<response::Answer>,
}

pub mod response {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Answer {
        #[prost(message, tag = "1")]
        Error(super::Failure),
        #[prost(message, tag = "2")]
        Hello(super::Hello),
        #[prost(message, tag = "3")]
        Started(super::OfProcess),
        #[prost(message, tag = "4")]
        Output(super::Output),
        #[prost(message, tag = "5")]
        Ended(super::Ended),
        #[prost(message, tag = "6")]
        Done(super::Done),
        #[prost(message, tag = "7")]
        Process(super::Process),
        #[prost(message, tag = "8")]
        Entry(super::Entry),
        #[prost(bytes = "bytes", tag = "9")]
        Chunk(bytes::Bytes),
        #[prost(message, tag = "10")]
        Disk(super::Disk),
        #[prost(message, tag = "50")]
        Ports(super::Ports),
        #[prost(message, tag = "30")]
        Change(super::Change),
        #[prost(message, tag = "32")]
        Match(super::Match),
        #[prost(message, tag = "33")]
        Edited(super::Edited),
        #[prost(message, tag = "34")]
        Searched(super::Searched),
    }
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Nothing {}

/// Each side says which version it speaks; the agent also which guests' pids it uses itself.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Hello {
    #[prost(uint32, tag = "1")]
    pub version: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Start {
    #[prost(string, repeated, tag = "1")]
    pub argv: Vec<String>,
    /// `KEY=VALUE`, over those of [`Boot`].
    #[prost(string, repeated, tag = "2")]
    pub env: Vec<String>,
    #[prost(string, optional, tag = "3")]
    pub cwd: Option<String>,
    #[prost(bool, tag = "4")]
    pub stdin: bool,
    /// The agent's own clock, for when no host is there to keep time.
    #[prost(uint64, optional, tag = "5")]
    pub timeout_ms: Option<u64>,
    /// Bytes of each stream.
    #[prost(uint64, tag = "6")]
    pub output: u64,
    /// The host's; given back with [`Process`].
    #[prost(bytes = "vec", tag = "7")]
    pub note: Vec<u8>,
}

/// A process whose streams are a terminal. All it writes is stream 1, of which the last
/// [`SCROLLBACK`] bytes are kept; it takes input from the start.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StartTerminal {
    #[prost(message, optional, tag = "1")]
    pub start: Option<Start>,
    #[prost(message, optional, tag = "2")]
    pub size: Option<TerminalSize>,
}

/// How much of a terminal's output is kept at least.
pub const SCROLLBACK: u64 = 1 << 20;

/// Each from 1 to 10000.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct TerminalSize {
    #[prost(uint32, tag = "1")]
    pub rows: u32,
    #[prost(uint32, tag = "2")]
    pub columns: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Resize {
    #[prost(uint64, tag = "1")]
    pub process: u64,
    #[prost(message, optional, tag = "2")]
    pub size: Option<TerminalSize>,
}

/// Where to begin reading. Past what was written there is nothing to send: a host that wants the
/// end only asks from `u64::MAX` on.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Attach {
    #[prost(uint64, tag = "1")]
    pub process: u64,
    #[prost(uint64, tag = "2")]
    pub stdout: u64,
    #[prost(uint64, tag = "3")]
    pub stderr: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct WriteStdin {
    #[prost(uint64, tag = "1")]
    pub process: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: bytes::Bytes,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct OfProcess {
    #[prost(uint64, tag = "1")]
    pub process: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Signal {
    #[prost(uint64, tag = "1")]
    pub process: u64,
    #[prost(int32, tag = "2")]
    pub signal: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct OfPath {
    #[prost(string, tag = "1")]
    pub path: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct FromTo {
    #[prost(string, tag = "1")]
    pub from: String,
    #[prost(string, tag = "2")]
    pub to: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SetMode {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(uint32, tag = "2")]
    pub mode: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Done {
    /// There was more than one answer may tell.
    #[prost(bool, tag = "1")]
    pub truncated: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Output {
    /// 1 or 2.
    #[prost(uint32, tag = "1")]
    pub stream: u32,
    /// Of a terminal, perhaps further on than was asked for: what is between is no longer kept.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    #[prost(bytes = "bytes", tag = "3")]
    pub data: bytes::Bytes,
}

/// How a process ended, as the agent saw it. The host judges.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Ended {
    #[prost(int32, optional, tag = "1")]
    pub exit_code: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub signal: Option<i32>,
    #[prost(enumeration = "Cause", tag = "3")]
    pub cause: i32,
    #[prost(uint64, tag = "4")]
    pub duration_us: u64,
    #[prost(bool, tag = "5")]
    pub truncated: bool,
}

/// Who ended a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Cause {
    /// Itself, or a signal that the agent did not send.
    Itself = 0,
    Timeout = 1,
    OutputLimit = 2,
    Killed = 3,
    /// The agent could not start it after all.
    Fault = 4,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Process {
    #[prost(uint64, tag = "1")]
    pub process: u64,
    #[prost(string, repeated, tag = "2")]
    pub argv: Vec<String>,
    /// Microseconds since the epoch.
    #[prost(uint64, tag = "3")]
    pub started_us: u64,
    #[prost(message, optional, tag = "4")]
    pub ended: Option<Ended>,
    #[prost(bytes = "vec", tag = "5")]
    pub note: Vec<u8>,
    /// What its terminal was last set to, if it has one.
    #[prost(message, optional, tag = "6")]
    pub terminal: Option<TerminalSize>,
    /// Bytes it has written so far, kept or not.
    #[prost(uint64, tag = "10")]
    pub stdout: u64,
    #[prost(uint64, tag = "11")]
    pub stderr: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Entry {
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub path: Vec<u8>,
    /// `st_mode`, type and permissions.
    #[prost(uint32, tag = "3")]
    pub mode: u32,
    #[prost(uint64, tag = "4")]
    pub size: u64,
    /// Nanoseconds since the epoch; may be negative.
    #[prost(int64, tag = "5")]
    pub modified_ns: i64,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub target: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Disk {
    #[prost(uint64, tag = "1")]
    pub used: u64,
    #[prost(uint64, tag = "2")]
    pub total: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct OfPort {
    /// 1 to 65535.
    #[prost(uint32, tag = "1")]
    pub port: u32,
}

/// Ports on which something listens, lowest first.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ports {
    #[prost(uint32, repeated, tag = "1")]
    pub ports: Vec<u32>,
}

/// What the agent could not do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Failure {
    #[prost(enumeration = "FailureKind", tag = "1")]
    pub kind: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum FailureKind {
    Internal = 0,
    Invalid = 1,
    NotFound = 2,
    AlreadyExists = 3,
    Denied = 4,
    Exhausted = 5,
    Unsupported = 6,
}
