//! What this host says about making sandboxes without root, and where one is. What really stands in
//! an engine's way its own probe finds out; this is read from outside, for those who ask as root
//! what others may do.

use std::{fs, path::Path};

use serde::Serialize;

/// How a finding is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Good,
    /// Less is possible than could be.
    Weak,
    Bad,
}

/// One thing about the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) name: &'static str,
    pub(crate) state: State,
    pub(crate) about: String,
    /// The command, or the setting, that changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<&'static str>,
}

/// Paths a container's maker hides in `/proc`.
const MASKED: [&str; 6] =
    ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/acpi", "/proc/scsi", "/proc/sys"];

const MORE_NAMESPACES: &str = "sudo sysctl user.max_user_namespaces=10000; to keep it, write \
    user.max_user_namespaces = 10000 into /etc/sysctl.d/60-atoll.conf";
const LET_USERS: &str = "sudo sysctl kernel.unprivileged_userns_clone=1; to keep it, write \
    kernel.unprivileged_userns_clone = 1 into /etc/sysctl.d/60-atoll.conf";
const LET_ATOLL: &str = "run `atoll doctor` as that user: it prints an AppArmor profile for atoll; \
    or for every program: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0";
const UNMASK: &str = "start the container with --security-opt systempaths=unconfined (Docker), \
    --security-opt unmask=ALL (Podman) or procMount: Unmasked (Kubernetes)";

/// Looks at a host whose root is `root`.
pub(crate) fn look(root: &Path) -> Vec<Finding> {
    let mut findings = vec![namespaces(root)];
    findings.extend(container(root));
    findings.extend(masked(root));
    findings.extend(tracing(root));
    findings
}

/// The text of a file, without the end of its line; none if it cannot be read.
fn read(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path.trim_start_matches('/'))).ok()?;
    Some(text.trim_end().to_owned())
}

fn namespaces(root: &Path) -> Finding {
    let finding = |state, about: &str, fix| Finding {
        name: "user namespaces",
        state,
        about: about.to_owned(),
        fix,
    };
    let setting = |path: &str| read(root, path).unwrap_or_default();
    if setting("/proc/sys/user/max_user_namespaces") == "0" {
        let about = "nobody can make any (user.max_user_namespaces is 0)";
        finding(State::Bad, about, Some(MORE_NAMESPACES))
    } else if setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
        let about = "only root can make them (kernel.unprivileged_userns_clone is 0)";
        finding(State::Weak, about, Some(LET_USERS))
    } else if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
        let about = "AppArmor lets ordinary users use them only with a profile";
        finding(State::Weak, about, Some(LET_ATOLL))
    } else {
        finding(State::Good, "ordinary users can make them", None)
    }
}

/// The container this runs in, if it can be told.
fn container(root: &Path) -> Option<Finding> {
    let first = read(root, "/proc/1/cgroup").unwrap_or_default();
    let named =
        ["docker", "kubepods", "libpod", "lxc"].into_iter().find(|name| first.contains(name));
    let exists = |path: &str| root.join(path.trim_start_matches('/')).exists();
    let by = if exists("/.dockerenv") {
        "Docker"
    } else if exists("/run/.containerenv") {
        "Podman"
    } else {
        named?
    };
    Some(Finding {
        name: "container",
        state: State::Weak,
        about: format!("this runs in a container ({by}), whose fences are around Atoll's"),
        fix: None,
    })
}

fn masked(root: &Path) -> Option<Finding> {
    let mounts = read(root, "/proc/self/mountinfo")?;
    let over = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .find(|place| MASKED.contains(place))?;
    Some(Finding {
        name: "/proc",
        state: State::Weak,
        about: format!("parts are hidden ({over}): ordinary users cannot mount one for a sandbox"),
        fix: Some(UNMASK),
    })
}

fn tracing(root: &Path) -> Option<Finding> {
    let scope = read(root, "/proc/sys/kernel/yama/ptrace_scope")?;
    let (state, about) = match scope.as_str() {
        "0" => (State::Weak, "processes of one user may trace each other, `local` sandboxes too"),
        _ => (State::Good, "processes may trace only their own children, or none"),
    };
    Some(Finding { name: "ptrace", state, about: about.to_owned(), fix: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host made of these files.
    fn host(files: &[(&str, &str)]) -> Vec<Finding> {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        look(root.path())
    }

    fn states(findings: &[Finding]) -> Vec<(&str, State)> {
        findings.iter().map(|finding| (finding.name, finding.state)).collect()
    }

    #[test]
    fn a_plain_host_is_fine() {
        let findings = host(&[
            ("proc/sys/user/max_user_namespaces", "31402\n"),
            ("proc/sys/kernel/unprivileged_userns_clone", "1\n"),
            ("proc/sys/kernel/yama/ptrace_scope", "1\n"),
            ("proc/1/cgroup", "0::/init.scope\n"),
            ("proc/self/mountinfo", "22 1 0:20 / /proc rw - proc proc rw\n"),
        ]);

        let good = State::Good;
        assert_eq!(states(&findings), [("user namespaces", good), ("ptrace", good)]);
    }

    #[test]
    fn each_switch_has_its_fix() {
        for (path, value, state, part) in [
            (
                "proc/sys/user/max_user_namespaces",
                "0",
                State::Bad,
                "user.max_user_namespaces=10000",
            ),
            (
                "proc/sys/kernel/unprivileged_userns_clone",
                "0",
                State::Weak,
                "kernel.unprivileged_userns_clone=1",
            ),
            (
                "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                "1",
                State::Weak,
                "apparmor_restrict_unprivileged_userns=0",
            ),
        ] {
            let findings = host(&[(path, value)]);
            assert_eq!(findings[0].state, state, "{path}");
            assert!(findings[0].fix.unwrap().contains(part), "{path}");
        }
    }

    #[test]
    fn a_container_is_told_by_what_it_leaves() {
        for (path, content, by) in [
            (".dockerenv", "", "Docker"),
            ("run/.containerenv", "engine=\"podman\"", "Podman"),
            ("proc/1/cgroup", "5:memory:/kubepods/burstable/pod1\n", "kubepods"),
            ("proc/1/cgroup", "0::/docker/0123\n", "docker"),
        ] {
            let findings = host(&[(path, content)]);
            assert!(findings[1].about.contains(by), "{path}: {findings:?}");
        }
    }

    #[test]
    fn a_masked_proc_is_told_with_the_way_out() {
        let mounts = "22 1 0:20 / /proc rw - proc proc rw\n\
            23 22 0:5 /null /proc/kcore rw - tmpfs tmpfs rw\n";
        let findings = host(&[("proc/self/mountinfo", mounts)]);

        assert_eq!(states(&findings)[1], ("/proc", State::Weak));
        assert!(findings[1].fix.unwrap().contains("systempaths=unconfined"));
    }
}
