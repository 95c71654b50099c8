//! The processes beneath one, and their end.

use std::{
    collections::{HashMap, HashSet},
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    fs::{Dir, Mode, OFlags, openat},
    io::{Errno, read},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};

/// How long stopping may take before killing begins anyway.
const STOPPING: Duration = Duration::from_secs(1);
/// How long all of it may take.
const ENDING: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_micros(500);

/// A process as `/proc` showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    pid: Pid,
    parent: i32,
    /// Will not run before it is signalled, or not for long.
    settled: bool,
    /// With the pid, this names a process for ever.
    begun: u64,
}

/// Ends all descendants of `root` except those beneath `spared`, and says whether none is left.
///
/// First stops them all, round after round, so that none can make another while they are killed
/// one by one. `reap` waits for those that have ended and says whether any may be left. Bounded.
pub(crate) fn end(
    proc: &OwnedFd,
    root: Pid,
    spared: &HashSet<Pid>,
    mut reap: impl FnMut() -> bool,
) -> bool {
    let begin = Instant::now();
    let mut tree = Vec::new();
    let mut known = HashSet::new();
    while begin.elapsed() < STOPPING {
        if !reap() {
            return true;
        }
        match descendants(proc, root, spared) {
            Ok(found) => tree = found,
            Err(_) => break,
        }
        let stopped = tree.iter().all(|process| process.settled);
        let pids: HashSet<_> = tree.iter().map(|process| (process.pid, process.begun)).collect();
        if stopped && pids == known {
            break;
        }
        for process in tree.iter().filter(|process| !process.settled) {
            hit(proc, process, Signal::STOP);
        }
        if pids == known {
            std::thread::sleep(PAUSE);
        }
        known = pids;
    }
    loop {
        for process in &tree {
            hit(proc, process, Signal::KILL);
        }
        // Dying takes a moment, looking through all processes a longer one.
        for _ in 0..10 {
            if !reap() {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        if begin.elapsed() > ENDING {
            return false;
        }
        tree = descendants(proc, root, spared).unwrap_or_default();
    }
}

/// Whether `root` has descendants, except those beneath `spared`.
pub(crate) fn any(proc: &OwnedFd, root: Pid, spared: &HashSet<Pid>) -> bool {
    descendants(proc, root, spared).is_ok_and(|found| !found.is_empty())
}

/// Signals the process that was seen, never one that has its pid now.
fn hit(proc: &OwnedFd, process: &Seen, signal: Signal) {
    match pidfd_open(process.pid, PidfdFlags::empty()) {
        Ok(pidfd) => {
            if look(proc, process.pid).is_some_and(|now| now.begun == process.begun) {
                let _ = pidfd_send_signal(&pidfd, signal);
            }
        }
        Err(Errno::NOSYS) => drop(kill_process(process.pid, signal)),
        Err(_) => {}
    }
}

fn descendants(proc: &OwnedFd, root: Pid, spared: &HashSet<Pid>) -> io::Result<Vec<Seen>> {
    let mut children: HashMap<i32, Vec<Seen>> = HashMap::new();
    for entry in Dir::read_from(proc)? {
        let entry = entry?;
        let pid = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
        if let Some(seen) = pid.and_then(Pid::from_raw).and_then(|pid| look(proc, pid)) {
            children.entry(seen.parent).or_default().push(seen);
        }
    }
    let mut found: Vec<Seen> = Vec::new();
    let mut parents = vec![root.as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if !spared.contains(&child.pid) {
                parents.push(child.pid.as_raw_nonzero().get());
                found.push(child);
            }
        }
    }
    Ok(found)
}

fn look(proc: impl AsFd, pid: Pid) -> Option<Seen> {
    let path = format!("{}/stat", pid.as_raw_nonzero());
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0; 1024];
    let count = read(&file, &mut buffer).ok()?;
    parse(pid, &buffer[..count])
}

/// Reads a line of `/proc/PID/stat`: the name in it may hold anything, `)` and spaces included.
fn parse(pid: Pid, stat: &[u8]) -> Option<Seen> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // The start time is field 22 of the line; the state is field 3.
    let begun = fields.nth(17)?.parse().ok()?;
    // D: waiting in the kernel, as a parent does whose `vfork`ed child is stopped.
    let settled = matches!(state, "T" | "t" | "Z" | "X" | "x" | "D");
    Some(Seen { pid, parent, settled, begun })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_made_to_confuse_does_not() {
        let pid = Pid::from_raw(42).unwrap();
        let mut line = b"42 (a) S 1 (x) T 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 ".to_vec();
        line.extend_from_slice(b"99887 1 2 3");

        let seen = parse(pid, &line);

        assert_eq!(seen, Some(Seen { pid, parent: 7, settled: true, begun: 99887 }));
    }

    #[test]
    fn a_line_cut_short_is_no_process() {
        assert_eq!(parse(Pid::from_raw(1).unwrap(), b"1 (init) S 0"), None);
    }
}
