//! The sandbox's first process, from its birth until it is the agent.

use std::os::fd::{AsFd as _, OwnedFd};

use atoll_launcher::{Failure, Ids, Plan, Step, descriptor, receive, send};
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::fcntl_dupfd_cloexec,
};

use crate::{failure::At as _, groups, identity, numbers, root, sys};

/// Above every number the agent expects something at.
const FREE: i32 = 256;

/// Builds the sandbox and becomes the agent, or says why not and ends.
pub(crate) fn become_agent(plan: &Plan, descriptors: Vec<OwnedFd>, parent: OwnedFd) -> ! {
    // Out of the way of all the numbers the agent expects something at.
    let all = [parent].into_iter().chain(descriptors).map(|fd| fcntl_dupfd_cloexec(fd, FREE));
    let moved: Result<Vec<_>, _> = all.collect();
    if let Ok(Some((parent, descriptors))) = moved.as_deref().map(<[_]>::split_first) {
        let Err(failure) = start(plan, descriptors, parent);
        let _ = send(parent.as_fd(), &failure, &[]);
    }
    sys::exit()
}

fn start(
    plan: &Plan,
    descriptors: &[OwnedFd],
    parent: &OwnedFd,
) -> Result<std::convert::Infallible, Failure> {
    let Some((covers, trees)) = receive(parent.as_fd()).at(Step::MapIds, "")? else {
        sys::exit();
    };
    if let Ids::Range(_) = plan.ids {
        identity::become_root().at(Step::Identity, "")?;
    }
    let doors = descriptors.get(descriptor::FIRST_DOOR..).unwrap_or_default();
    groups::hide(doors).at(Step::JoinGroups, "")?;
    root::build(plan, trees, covers)?;
    network(plan).at(Step::Network, "")?;
    rustix::system::sethostname(plan.hostname.as_bytes()).at(Step::Identity, "")?;

    if plan.attempt {
        sys::exit();
    }
    let (program, kept) =
        (descriptors.get(descriptor::PROGRAM), descriptors.get(descriptor::FIRST_KEPT..));
    let (Some(program), Some(kept)) = (program, kept) else {
        return Err(Failure { step: Step::Start, what: String::new(), errno: libc::EBADF });
    };
    keep(kept).at(Step::Start, "")?;
    rustix::process::setsid().at(Step::Start, "")?;
    sys::reset_signals();
    numbers::pass(plan.own_pids).at(Step::Identity, "numbers")?;
    identity::keep_only_the_agents_rights(plan).at(Step::Identity, "")?;
    Err(sys::execute(program.as_fd(), c"atoll-agent")).at(Step::Start, "")
}

/// Gives the agent its descriptors, in their order from [`descriptor::BOOT`] on, and no others:
/// all that this program opened itself closes by itself.
fn keep(descriptors: &[OwnedFd]) -> std::io::Result<()> {
    let null = openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for number in 0..descriptor::BOOT {
        sys::place(null.as_fd(), number)?;
    }
    // Its own number is one of those to be filled.
    drop(null);
    for (fd, number) in descriptors.iter().zip(descriptor::BOOT..) {
        sys::place(fd.as_fd(), number)?;
    }
    Ok(())
}

fn network(plan: &Plan) -> std::io::Result<()> {
    if plan.is_weak(atoll_launcher::Weakness::Network) { Ok(()) } else { sys::loopback_up() }
}
