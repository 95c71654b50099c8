//! Whether there is a daemon, and how well its limits hold.

use atoll_engine::{Fact, Grade, Probe, Strength};
use bollard::models::SystemInfo;

pub(crate) fn probe(info: &SystemInfo) -> Probe {
    Probe { grades: grades(info), facts: facts(info) }
}

/// The first id on the host of a daemon that maps ids: 0 of one that does not, or does not say.
pub(crate) fn first_id(info: &SystemInfo) -> u32 {
    let mapped = has(info, "name=userns");
    // Such a daemon keeps its files in a directory it names `<uid>.<gid>`.
    let root = info.docker_root_dir.as_deref().unwrap_or_default();
    let name = root.rsplit('/').next().unwrap_or_default();
    name.split_once('.').and_then(|(uid, _)| uid.parse().ok()).filter(|_| mapped).unwrap_or(0)
}

fn has(info: &SystemInfo, option: &str) -> bool {
    info.security_options.iter().flatten().any(|one| one.split(',').any(|part| part == option))
}

fn grades(info: &SystemInfo) -> Vec<Grade> {
    let grade = |limit: &str, strength, by: &str| Grade {
        limit: limit.to_owned(),
        strength,
        by: by.to_owned(),
    };
    let by_daemon = |limit: &str, can: Option<bool>, by: &str| match can {
        Some(false) => grade(limit, Strength::Refused, "the daemon cannot limit it here"),
        _ => grade(limit, Strength::Full, by),
    };
    vec![
        grade("timeout", Strength::Full, "the server, and the agent should the server be gone"),
        by_daemon(
            "memory",
            info.memory_limit,
            "the container's control group, the agent's included",
        ),
        by_daemon("cpus", info.cpu_cfs_quota, "the container's control group"),
        grade("cpu_time", Strength::Full, "the container's control group, the agent's included"),
        by_daemon("pids", info.pids_limit, "the container's control group, 32 more for the agent"),
        grade("open_files", Strength::Full, "rlimit of each process"),
        grade("output", Strength::Full, "the agent"),
        grade(
            "disk",
            Strength::Weak,
            "sizes of tmpfs, whose content is memory and counted as such: 13/16 for the home",
        ),
    ]
}

fn facts(info: &SystemInfo) -> Vec<Fact> {
    let fact = |name: &str, value: Option<String>| {
        Some(Fact { name: name.to_owned(), value: value.filter(|value| !value.is_empty())? })
    };
    let mut runtimes: Vec<_> =
        info.runtimes.iter().flatten().map(|(name, _)| name.clone()).collect();
    runtimes.sort();
    let said = |yes: bool| Some(if yes { "yes" } else { "no" }.to_owned());
    [
        fact("daemon", info.server_version.clone()),
        fact("storage", info.driver.clone()),
        fact("cgroup", info.cgroup_version.map(|version| format!("cgroup v{version}"))),
        fact("runtimes", Some(runtimes.join(" "))),
        fact("user namespaces", said(has(info, "name=userns") || has(info, "name=rootless"))),
        fact("rootless", said(has(info, "name=rootless"))),
        fact("seccomp", said(has(info, "name=seccomp"))),
        fact("live restore", said(info.live_restore_enabled == Some(true))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_id_is_read_where_ids_are_mapped() {
        let info = |root: &str, options: &[&str]| SystemInfo {
            docker_root_dir: Some(root.to_owned()),
            security_options: Some(options.iter().map(|one| (*one).to_owned()).collect()),
            ..SystemInfo::default()
        };

        assert_eq!(first_id(&info("/var/lib/docker/100000.100000", &["name=userns"])), 100_000);
        assert_eq!(first_id(&info("/var/lib/docker", &["name=userns"])), 0);
        assert_eq!(first_id(&info("/srv/1.2", &["name=seccomp,profile=default"])), 0);
    }
}
