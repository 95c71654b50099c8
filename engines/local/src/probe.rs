//! What this host gives the engine.

use std::path::Path;

use atoll_engine::{Error, Fact, Grade, Probe, Result, Strength};

use crate::process::Identity;

pub(crate) fn probe(path: &str) -> Result<Probe> {
    if Identity::own().and_then(Identity::open).is_none() {
        return Err(Error::unavailable("processes cannot be held by a descriptor here")
            .hint("use Linux 5.3 or newer, with /proc mounted"));
    }
    let python = std::env::split_paths(path).any(|directory| directory.join("python3").exists());
    let kernel = std::fs::read_to_string(Path::new("/proc/sys/kernel/osrelease"));
    Ok(Probe {
        grades: grades(),
        facts: vec![
            fact("kernel", kernel.unwrap_or_default().trim_end()),
            fact("python3", if python { "found" } else { "not found: no venv" }),
        ],
    })
}

fn grades() -> Vec<Grade> {
    let alone = "nothing holds all processes of a sandbox together";
    [
        ("timeout", Strength::Full, "the agent and the daemon each keep time"),
        ("memory", Strength::Refused, alone),
        ("cpus", Strength::Refused, alone),
        ("cpu_time", Strength::Weak, "the sum over the sandbox's processes, looked at repeatedly"),
        ("pids", Strength::Refused, alone),
        ("open_files", Strength::Weak, "RLIMIT_NOFILE, which root may raise"),
        ("output", Strength::Full, "the agent counts"),
        ("disk", Strength::Refused, "the files are in a plain directory"),
    ]
    .map(|(limit, strength, by)| Grade { limit: limit.into(), strength, by: by.into() })
    .into()
}

fn fact(name: &str, value: &str) -> Fact {
    Fact { name: name.into(), value: value.into() }
}
