//! Tells whether the `atoll run` that made a session still lives, so that `atoll prune` can end
//! what a killed one left.
//!
//! A pid alone may be another program's by now; with its start time it is not.

use std::fs;

/// The key of a session's metadata that holds the witness.
pub(crate) const NAME: &str = "atoll.run";

/// The pid and start time of this process: `1234:567890`.
pub(crate) fn of_this_process() -> String {
    let pid = std::process::id();
    format!("{pid}:{}", started(pid).unwrap_or_default())
}

/// Whether the process a witness names has ended.
pub(crate) fn is_gone(witness: &str) -> bool {
    let named = witness
        .split_once(':')
        .and_then(|(pid, time)| Some((pid.parse::<u32>().ok()?, time.parse::<u64>().ok()?)));
    match named {
        Some((pid, time)) => started(pid) != Some(time),
        None => false,
    }
}

/// When a process started, in the kernel's ticks since boot; none if there is no such process, or
/// only its name waiting for its parent.
pub(crate) fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses; what follows the last one does not.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| !ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_process_is_not_gone() {
        assert!(!is_gone(&of_this_process()));
    }

    #[test]
    fn a_pid_used_again_is_another_process() {
        let pid = std::process::id();

        assert!(is_gone(&format!("{pid}:1")));
    }

    #[test]
    fn a_process_that_was_not_waited_for_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let witness = format!("{}:{}", child.id(), started(child.id()).unwrap_or(7));
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);

        while !is_gone(&witness) {
            assert!(std::time::Instant::now() < deadline, "it still seems to live");
            std::thread::yield_now();
        }

        child.wait().unwrap();
    }

    #[test]
    fn what_is_no_witness_proves_nothing() {
        assert!(!is_gone("someone"));
    }
}
