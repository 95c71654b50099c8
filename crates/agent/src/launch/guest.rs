//! What stands between a fork of the agent and a program nobody has read.

use std::{
    ffi::CString,
    io,
    os::fd::{BorrowedFd, OwnedFd},
};

use atoll_agent_protocol::message::{Rlimit, User};
use rustix::{
    fs::{Mode, OFlags, openat},
    io::write,
    process::{DumpableBehavior, chdir, ioctl_tiocsctty, set_dumpable_behavior, setsid, umask},
    thread::{
        CapabilitiesSecureBits, CapabilitySet, CapabilitySets, Gid, Uid,
        clear_ambient_capability_set, set_capabilities, set_capabilities_secure_bits,
        set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    },
};

use super::job::Job;
use crate::sys::{self, Ruleset};

/// Where programs are looked for when nothing says otherwise.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How every guest of this sandbox is sealed.
#[derive(Debug)]
pub(crate) struct Guests {
    /// Open `cgroup.procs` files.
    pub(crate) cgroups: Vec<OwnedFd>,
    pub(crate) user: Option<User>,
    pub(crate) seccomp: Option<Vec<u8>>,
    pub(crate) rlimits: Vec<Rlimit>,
    pub(crate) rules: Option<Ruleset>,
    /// `/proc`, opened before any guest could have changed what it is.
    pub(crate) proc: OwnedFd,
    /// The limit of open files this program was started with; it has raised its own.
    pub(crate) files: (u64, u64),
    /// Numbers below this are for the agent's processes; see [`super::numbers`].
    pub(crate) own_pids: i32,
    /// Their `oom_score_adj`, if it is not to be the agent's.
    pub(crate) oom_score: Option<i32>,
}

/// What a guest was about when it failed, as told over a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    Fork = 1,
    Descriptors,
    Session,
    ControlGroup,
    Limits,
    Privileges,
    Directory,
    Filter,
    Execute,
}

impl Step {
    const ALL: [Self; 9] = [
        Self::Fork,
        Self::Descriptors,
        Self::Session,
        Self::ControlGroup,
        Self::Limits,
        Self::Privileges,
        Self::Directory,
        Self::Filter,
        Self::Execute,
    ];

    /// Tells the agent that this failed.
    pub(crate) fn tell(self, cause: &io::Error, error: BorrowedFd<'_>) {
        let code = cause.raw_os_error().unwrap_or(libc::EIO);
        let [a, b, c, d] = code.to_le_bytes();
        let _ = write(error, &[self as u8, a, b, c, d]);
    }

    /// Reads what [`tell`](Self::tell) wrote.
    pub(crate) fn told(bytes: &[u8]) -> Option<(Self, io::Error)> {
        let &[step, a, b, c, d] = bytes else { return None };
        let step = Self::ALL.into_iter().find(|known| *known as u8 == step)?;
        Some((step, io::Error::from_raw_os_error(i32::from_le_bytes([a, b, c, d]))))
    }
}

/// A command in the form the kernel takes it.
pub(crate) struct Program {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    directory: CString,
    terminal: bool,
}

impl Program {
    pub(crate) fn new(job: Job) -> io::Result<Self> {
        let name = job.argv.first().cloned().unwrap_or_default();
        let candidates = if name.contains('/') {
            vec![CString::new(name)?]
        } else {
            let path = job.env.iter().find_map(|variable| variable.strip_prefix("PATH="));
            path.unwrap_or(PATH)
                .split(':')
                .map(|place| if place.is_empty() { "." } else { place })
                .map(|place| CString::new(format!("{place}/{name}")))
                .collect::<Result<_, _>>()?
        };
        let terminal = job.terminal;
        let strings = |list: Vec<String>| list.into_iter().map(CString::new).collect();
        let argv: Result<_, _> = strings(job.argv);
        let env: Result<_, _> = strings(job.env);
        let directory = CString::new(job.directory)?;
        Ok(Self { candidates, argv: argv?, env: env?, directory, terminal })
    }
}

/// Seals this process and makes it the program. If any step fails the program never runs, and
/// `error` is told which.
pub(crate) fn become_program(
    program: &Program,
    stdio: &[OwnedFd; 3],
    error: BorrowedFd<'_>,
    guests: &Guests,
) -> ! {
    if let Err((step, cause)) = connect(stdio, error, guests) {
        step.tell(&cause, error);
        sys::exit(127);
    }
    // From here on only 0, 1, 2 and the pipe for errors are open.
    // The pipe was moved: this is its number now.
    let error = sys::borrow(ERROR_FD);
    let Err((step, cause)) = guests.seal(program);
    step.tell(&cause, error);
    sys::exit(127)
}

const ERROR_FD: i32 = 3;

type Outcome<T> = Result<T, (Step, io::Error)>;

fn at<T, E: Into<io::Error>>(step: Step, result: Result<T, E>) -> Outcome<T> {
    result.map_err(|cause| (step, cause.into()))
}

fn connect(stdio: &[OwnedFd; 3], error: BorrowedFd<'_>, guests: &Guests) -> Outcome<()> {
    use std::os::fd::AsFd as _;

    for cgroup in &guests.cgroups {
        at(Step::ControlGroup, write(cgroup, b"0"))?;
    }
    if let Some(score) = guests.oom_score {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&guests.proc, "self/oom_score_adj", flags, Mode::empty());
        let written = file.and_then(|file| write(&file, score.to_string().as_bytes()));
        at(Step::Limits, written)?;
    }
    for (number, fd) in (0..).zip(stdio) {
        at(Step::Descriptors, sys::install_at(fd.as_fd(), number, true))?;
    }
    at(Step::Descriptors, sys::install_at(error, ERROR_FD, false))?;
    at(Step::Descriptors, sys::close_from(ERROR_FD + 1))
}

impl Guests {
    /// Puts the calling thread under the rules for files, if there are any.
    pub(crate) fn confine(&self) -> io::Result<()> {
        let Some(rules) = &self.rules else { return Ok(()) };
        set_no_new_privs(true)?;
        rules.enforce()
    }

    fn seal(&self, program: &Program) -> Outcome<std::convert::Infallible> {
        at(Step::Session, setsid())?;
        if program.terminal {
            at(Step::Session, ioctl_tiocsctty(sys::borrow(0)))?;
        }
        umask(Mode::from_raw_mode(0o022));
        sys::raise_limit_of_files(self.files.0, self.files.1);
        for limit in &self.rlimits {
            at(Step::Limits, sys::limit(limit.resource, limit.value))?;
        }
        at(Step::Privileges, self.drop_privileges())?;
        at(Step::Directory, chdir(&program.directory))?;
        at(Step::Session, sys::reset_signals())?;
        if let Some(filter) = &self.seccomp {
            at(Step::Filter, sys::install_seccomp(filter))?;
        }
        let cause = sys::execute(&program.candidates, &program.argv, &program.env);
        Err((Step::Execute, cause))
    }

    fn drop_privileges(&self) -> io::Result<()> {
        // Without a user of its own a guest has what this program has, which may be little.
        let lenient = |result: rustix::io::Result<()>| match result {
            Err(rustix::io::Errno::PERM) if self.user.is_none() => Ok(()),
            result => result,
        };
        // Some kernels know fewer of these; they only back up what follows.
        let _ = set_capabilities_secure_bits(
            CapabilitiesSecureBits::NO_ROOT
                | CapabilitiesSecureBits::NO_ROOT_LOCKED
                | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
        );
        match sys::drop_bounding_set() {
            Err(cause) if self.user.is_some() || cause.raw_os_error() != Some(libc::EPERM) => {
                return Err(cause);
            }
            _ => {}
        }
        match clear_ambient_capability_set() {
            // A kernel without such a set, as gVisor's; giving up the others empties it anyway.
            Err(rustix::io::Errno::INVAL) => {}
            cleared => cleared?,
        }
        lenient(set_thread_groups(&[]))?;
        if let Some(User { uid, gid }) = self.user {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            set_thread_res_gid(gid, gid, gid)?;
            set_thread_res_uid(uid, uid, uid)?;
        }
        drop_capabilities()?;
        // Until the program runs this is the agent's memory: not for the user's eyes.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(set_no_new_privs(true)?)
    }
}

/// Gives up every capability of the calling thread.
pub(crate) fn drop_capabilities() -> rustix::io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets)
}
