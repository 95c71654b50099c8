//! What the engine tells the launcher and hears from it.
//!
//! The launcher decides nothing: what is shown where, with which rights, is all in the [`Plan`].
//! It comes as one JSON message on the socket that is the launcher's standard input, together with
//! the descriptors named by [`descriptor`]; one [`Report`] goes back, and with it, if it got
//! that far, the pidfd of the sandbox's first process. That is a child of whoever started the
//! launcher, who also reaps it.

mod message;

use std::path::PathBuf;

pub use message::{receive, send};

use serde::{Deserialize, Serialize};

/// How many ids a sandbox has: 0 to 65535 inside.
pub const IDS: u32 = 65536;

/// The most bytes of a plan.
pub const MAX_PLAN: usize = 128 << 10;

/// Which descriptor is which: in the message to the launcher, and, for those that go on, in the
/// agent.
pub mod descriptor {
    /// In the message: the agent's program.
    pub const PROGRAM: usize = 0;
    /// In the message: what becomes [`BOOT`].
    pub const FIRST_KEPT: usize = 1;
    /// In the message: what becomes the first of [`DOORS`].
    pub const FIRST_DOOR: usize = 4;
    /// In the agent: what the agent is told, see the agent's protocol.
    pub const BOOT: i32 = 3;
    /// In the agent: where hosts connect.
    pub const LISTENER: i32 = 4;
    /// In the agent: holds the lock on the sandbox's ids as long as the agent lives.
    pub const LEASE: i32 = 5;
    /// In the agent: the first of the files through which guests join their control groups.
    pub const DOORS: i32 = 6;
}

/// A sandbox to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Whom the sandbox's users are on the host.
    pub ids: Ids,
    pub hostname: String,
    /// Bytes and files of all that is writable and the sandbox's own.
    pub disk: u64,
    pub inodes: u64,
    /// A whole root file system, beneath everything else; none for an empty one.
    pub lower: Option<PathBuf>,
    /// Shown in this order.
    pub binds: Vec<Bind>,
    pub directories: Vec<Directory>,
    pub links: Vec<Link>,
    pub files: Vec<Text>,
    /// Directories that can be written in although the sandbox's root cannot. None: the root can
    /// be, as far as its ids allow.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// Numbers of processes below this are the agent's to choose, and nobody else's.
    #[serde(default)]
    pub own_pids: i32,
    /// Make everything, then end instead of becoming the agent: to see whether it can be made.
    #[serde(default)]
    pub attempt: bool,
    /// How many of the descriptors, those after the kept ones, are files through which the agent
    /// itself joins its control groups.
    pub own_doors: usize,
    /// Leave the sandbox open in these ways. Only for tests that must see a check fail.
    #[serde(default)]
    pub weaknesses: Vec<Weakness>,
}

/// The sandbox's users and groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ids {
    /// Made by the host's root: [`IDS`] of them, of which 0 is this one of the host; the others
    /// follow.
    Range(u32),
    /// Made by an ordinary user, who has no other: this one inside is that user and its group.
    One(u32),
    /// Made by an ordinary user, to whom the host has given more.
    Lent(Lent),
}

/// Ids of an ordinary user's allowance, and the host's programs that map them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lent {
    pub users: Vec<Extent>,
    pub groups: Vec<Extent>,
    /// `newuidmap` and `newgidmap`.
    pub programs: [PathBuf; 2],
}

/// One id inside, and whom it is on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    pub inside: u32,
    pub outside: u32,
}

/// A file or directory of the host shown inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    pub source: PathBuf,
    pub target: PathBuf,
    pub writable: bool,
    /// Show what the directory's owner and group own as this user's and group's inside, and let
    /// those act as them.
    pub as_user: Option<u32>,
    /// Directories in it that an empty one covers, if they are there; only of what is shown as a
    /// user's.
    #[serde(default)]
    pub hidden: Vec<PathBuf>,
}

/// A directory of the sandbox's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    pub path: PathBuf,
    pub mode: u32,
    /// Its owner inside.
    pub owner: u32,
}

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub path: PathBuf,
    pub target: PathBuf,
}

/// A small file, readable by all; one that is there already is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    pub path: PathBuf,
    pub content: String,
}

/// A wall left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weakness {
    /// No system call is refused.
    Seccomp,
    /// No place is refused by Landlock.
    Landlock,
    /// User namespaces may be nested.
    NestedUsers,
    /// The kernel's own files in `/proc` can be seen and written as far as ids allow.
    Proc,
    /// What is shown from the host can be written as far as ids allow.
    WritableBinds,
    /// Guests are the agent's user, with its capabilities.
    Root,
    /// The host's network.
    Network,
    /// The host's message queues, semaphores and shared memory.
    Ipc,
    /// No limit on memory.
    Memory,
    /// No limit on the number of processes.
    Pids,
    /// No limit on processor time per time.
    Cpus,
    /// No limit on files.
    Disk,
}

/// How the launch went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Running { pid: i32 },
    Failed(Failure),
}

/// What could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub step: Step,
    /// What it was done to; a path of the host, perhaps.
    pub what: String,
    pub errno: i32,
}

/// What was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    ReadPlan,
    JoinGroups,
    Clone,
    MapIds,
    /// Make a file system for terminals.
    Terminals,
    /// Show a host's directory under other ids.
    MapMount,
    Bind,
    MakeRoot,
    Proc,
    Devices,
    Network,
    Identity,
    Start,
}

impl Plan {
    /// Whether an ordinary user makes it.
    pub fn is_ordinary(&self) -> bool {
        !matches!(self.ids, Ids::Range(_))
    }

    pub fn is_weak(&self, weakness: Weakness) -> bool {
        self.weaknesses.contains(&weakness)
    }
}
