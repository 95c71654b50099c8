//! From the descriptor this program is started with to what it needs to run.

use std::{
    ffi::OsString,
    fs::{File, Permissions},
    io::{self, Read as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{fs::PermissionsExt as _, net::UnixListener},
    },
    path::{Path, PathBuf},
};

use atoll_agent_protocol::message::{Access, BOOT_FD, BOOT_FILE, Boot, SOCKET_FILE};
use prost::Message as _;
use rustix::{
    fs::{FileType, Mode, OFlags, fstat, open},
    process::{DumpableBehavior, chdir, getpid, set_dumpable_behavior, umask},
};

use crate::{
    launch::Guests,
    sys::{self, Ruleset},
};

/// No more is read of a boot message.
const MAX_BOOT: u64 = 4 << 20;

/// What a sandbox is started with, checked.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) listener: OwnedFd,
    pub(crate) guests: Guests,
    pub(crate) home: String,
    pub(crate) env: Vec<String>,
    pub(crate) disk: String,
}

/// Where the boot message and the socket come from.
enum Source {
    Descriptors,
    Directory(PathBuf),
}

impl Source {
    fn of(arguments: &[OsString]) -> io::Result<Self> {
        match arguments {
            [] => Ok(Self::Descriptors),
            [word, directory] if word == "serve" => Ok(Self::Directory(directory.into())),
            _ => Err(io::Error::other("usage: atoll-agent [serve DIRECTORY]")),
        }
    }

    fn boot(&self) -> io::Result<File> {
        match self {
            Self::Descriptors => sys::adopt(BOOT_FD).map(File::from),
            Self::Directory(directory) => File::open(directory.join(BOOT_FILE)),
        }
    }

    fn listener(&self, boot: &Boot) -> io::Result<OwnedFd> {
        let Self::Directory(directory) = self else { return sys::adopt(boot.listener_fd) };
        let path = directory.join(SOCKET_FILE);
        let listener = UnixListener::bind(&path)?;
        // Hosts need not be this user. Who may come here at all is decided by the directories
        // above it, on either side.
        std::fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        Ok(listener.into())
    }
}

/// Reads the boot message and takes over what it names.
pub(crate) fn read(arguments: &[OsString]) -> io::Result<Setup> {
    let source = Source::of(arguments)?;
    let mut bytes = Vec::new();
    source.boot()?.take(MAX_BOOT).read_to_end(&mut bytes)?;
    let boot = Boot::decode(&bytes[..]).map_err(io::Error::other)?;
    for path in [&boot.home, &boot.disk] {
        if !path.starts_with('/') || path.contains('\0') {
            return Err(io::Error::other("home and disk must be absolute paths"));
        }
    }
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = open("/proc", directory - OFlags::PATH, Mode::empty())?;
    let rules = rules(&boot.landlock, &proc)?;
    let cgroups = boot.cgroup_fds.iter().map(|fd| sys::adopt(*fd)).collect::<Result<_, _>>()?;
    Ok(Setup {
        listener: source.listener(&boot)?,
        guests: Guests {
            cgroups,
            user: boot.user,
            seccomp: boot.seccomp,
            rlimits: boot.rlimits,
            rules,
            proc,
            files: sys::limits_of_files(),
            own_pids: boot.own_pids,
            oom_score: boot.oom_score,
        },
        home: boot.home,
        env: boot.env,
        disk: boot.disk,
    })
}

/// Makes this process hard to disturb.
pub(crate) fn harden(guests: &Guests) -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    umask(Mode::from_raw_mode(0o022));
    // Wherever it was started, that place should not be kept in use.
    chdir("/")?;
    sys::raise_limit_of_files(guests.files.1, guests.files.1);
    let first = getpid().is_init();
    // The kernel's own signs of a fault stay. Children are ignored, so that none becomes a zombie.
    let mut kept = vec![
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGABRT,
        libc::SIGTRAP,
        libc::SIGSYS,
    ];
    if !first {
        kept.push(libc::SIGTERM);
    }
    sys::ignore_signals(&kept);
    Ok(())
}

/// The rules for guests, none if no place was named. A kernel that has no such rules is an error:
/// who named places counts on them.
fn rules(places: &[Access], proc: &OwnedFd) -> io::Result<Option<Ruleset>> {
    if places.is_empty() {
        return Ok(None);
    }
    let rules = Ruleset::new(sys::landlock_version()?)?;
    for place in places {
        match open(Path::new(&place.path), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => {
                let mode = fstat(&fd)?.st_mode;
                let directory = FileType::from_raw_mode(mode) == FileType::Directory;
                rules.allow(fd.as_fd(), directory, place.writable)?;
            }
            // What is not there needs no permission.
            Err(rustix::io::Errno::NOENT) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    // Keepers are under the same rules, and find their processes there.
    rules.allow(proc.as_fd(), true, false)?;
    Ok(Some(rules))
}
