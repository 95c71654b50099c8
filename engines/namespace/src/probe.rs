//! Whether this host can run sandboxes, and how well.

use atoll_agent_client::cgroup::{Controller, Host, Version};
use atoll_engine::{Fact, Grade, Probe, Strength};

use crate::{
    limits::{DELEGATION, Means},
    maker::{self, Maker},
    root, sys,
};

/// What there is to know about a host that can.
pub(crate) fn probe(means: Means<'_>, maker: &Maker) -> Probe {
    Probe { grades: grades(means), facts: facts(means.groups, maker) }
}

fn grades(Means { groups, counted }: Means<'_>) -> Vec<Grade> {
    let by_group = |limit: &str, controller| {
        let (strength, by) = if groups.has(controller) {
            (Strength::Full, format!("control group ({})", name(groups.version())))
        } else {
            (Strength::Refused, format!("there is no control group for it; {DELEGATION}"))
        };
        Grade { limit: limit.to_owned(), strength, by }
    };
    let full = |limit: &str, by: &str| Grade {
        limit: limit.to_owned(),
        strength: Strength::Full,
        by: by.to_owned(),
    };
    let pids = if counted && !groups.has(Controller::Pids) {
        Grade {
            limit: "pids".to_owned(),
            strength: Strength::Weak,
            by: "rlimit of the sandbox's user, a few of the agent's own included; \
                 that it was reached is not told"
                .to_owned(),
        }
    } else {
        by_group("pids", Controller::Pids)
    };
    vec![
        full("timeout", "the daemon, and the agent should the daemon be gone"),
        by_group("memory", Controller::Memory),
        by_group("cpus", Controller::Cpu),
        by_group("cpu_time", Controller::CpuTime),
        pids,
        full("open_files", "rlimit of each process"),
        full("output", "the agent"),
        Grade {
            limit: "disk".to_owned(),
            strength: Strength::Weak,
            by: "size of a tmpfs, whose content is memory and counted as such".to_owned(),
        },
    ]
}

fn facts(groups: &Host, maker: &Maker) -> Vec<Fact> {
    let landlock = sys::landlock_version();
    let fact = |name: &str, value: String| Fact { name: name.to_owned(), value };
    vec![
        fact("kernel", maker::release()),
        fact("made by", maker.described().to_owned()),
        fact("cgroup", name(groups.version()).to_owned()),
        fact("landlock", landlock.map_or("none".to_owned(), |abi| format!("ABI {abi}"))),
        fact("host root", root::listed()),
    ]
}

fn name(version: Version) -> &'static str {
    match version {
        Version::V1 => "cgroup v1",
        Version::V2 => "cgroup v2",
    }
}
