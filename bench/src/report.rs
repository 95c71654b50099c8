//! The figures, for people and for programs.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a report is printed")]

use serde::Serialize;

use crate::{atoll::Footprint, machine::Machine, statistics::Summary};

#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) machine: Machine,
    pub(crate) rounds: usize,
    pub(crate) times: Vec<Summary>,
    pub(crate) footprint: Footprint,
}

/// One subject's median as a multiple of another's.
const RATIOS: &[(&str, &str, &str)] = &[
    ("session ready, cold, over REST", "atoll session create", "bwrap /bin/true"),
    ("one-shot Python over REST", "atoll one-shot over REST", "bare python3 FILE"),
    ("one-shot Python over REST", "atoll one-shot over REST", "bwrap python3 FILE"),
    ("one-shot Python over REST", "atoll one-shot over REST", "docker run python3 -c"),
    ("atoll run", "atoll run FILE", "bwrap python3 FILE"),
    ("atoll run", "atoll run FILE", "docker run python3 -c"),
    ("Python in a session", "atoll execute in a session", "bare python3 FILE"),
    ("Python in a session", "atoll execute in a session", "docker exec python3 -c"),
];

pub(crate) fn print(figures: &Figures) {
    println!("{} rounds, taking turns, on {}\n", figures.rounds, machine(&figures.machine));
    println!("{:<28} {:>10} {:>10}", "", "p50 ms", "p95 ms");
    for time in &figures.times {
        println!("{:<28} {:>10.2} {:>10.2}", time.name, time.p50_ms, time.p95_ms);
    }
    println!();
    let median = |name| figures.times.iter().find(|time| time.name == name).map(|time| time.p50_ms);
    for (what, subject, beside) in RATIOS {
        if let (Some(ours), Some(theirs)) = (median(*subject), median(*beside)) {
            println!("{what}: {:.2} × {beside}", ours / theirs);
        }
    }
    let footprint = &figures.footprint;
    println!("daemon starts in: {:.1} ms", footprint.daemon_start_ms);
    println!("idle daemon: {:.1} MiB resident", footprint.idle_daemon_mib);
    println!(
        "idle session: {:.2} MiB proportional set size, mean over {}",
        footprint.idle_session_mib, footprint.idle_sessions
    );
}

fn machine(machine: &Machine) -> String {
    format!("{} cores of {}, Linux {}", machine.cores, machine.processor, machine.kernel)
}

pub(crate) fn complain(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}
