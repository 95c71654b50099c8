//! Ends what is in a group: by membership, never by a number remembered from before.

use std::{fs, io, path::Path};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Sends a `SIGKILL` to every process of the group at `directory` and stops it from growing.
pub(super) fn all(directory: &Path) -> io::Result<()> {
    let whole = directory.join("cgroup.kill");
    if whole.exists() {
        return fs::write(whole, "1");
    }
    let most = directory.join("pids.max");
    if most.exists() {
        fs::write(most, "0")?;
    }
    for pid in members(directory)? {
        // Between the listing and the opening the process may have gone and its number may name
        // another: what is opened is killed only if the group still has that number, which it can
        // no longer give to anyone else.
        let Ok(opened) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if members(directory)?.contains(&pid) {
            let _ = pidfd_send_signal(opened, Signal::KILL);
        }
    }
    Ok(())
}

fn members(directory: &Path) -> io::Result<Vec<Pid>> {
    let text = match fs::read_to_string(directory.join("cgroup.procs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    Ok(text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect())
}
