//! Tries to make a sandbox as an ordinary user, and says what stands in the way.
//!
//! Whether that is allowed depends on the kernel, on the distribution, and on the container this
//! may be in; nothing but trying tells for certain. What is made is gone at once.

use std::{fs, io, os::fd::AsFd as _, path::Path, time::Duration};

use atoll_agent_client::private::Private;
use atoll_engine::{Error, Limits, Result, Spec};
use atoll_launcher::{Failure, Step};

use crate::{
    ids::Lease,
    launch::{Refusal, launch},
    limits::{Means, bounds},
    plan, process,
};

/// Gives up after so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What this host says about user namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Host {
    /// Kinds of namespaces of which none may be made, as their settings are called.
    none_of: Vec<&'static str>,
    /// Debian's switch for ordinary users is off.
    switched_off: bool,
    /// Ubuntu lets only programs with a profile use them.
    apparmor: bool,
    /// This is in a container, or in a filter of somebody else's.
    container: bool,
}

const KINDS: [&str; 7] = [
    "max_user_namespaces",
    "max_mnt_namespaces",
    "max_pid_namespaces",
    "max_net_namespaces",
    "max_ipc_namespaces",
    "max_uts_namespaces",
    "max_cgroup_namespaces",
];

/// Makes a sandbox without an agent and forgets it. Blocks.
pub(crate) fn attempt(lease: Lease) -> Result<()> {
    let internal = |error: io::Error| Error::internal("a sandbox cannot be tried").because(error);
    let groups = atoll_agent_client::cgroup::Host::v1([]);
    let bounds = bounds(&Limits::default(), Means { groups: &groups, counted: false })?;
    let mut plan = plan::plan(&Spec::default(), &bounds, lease.ids, &Private::default(), &[])?;
    plan.attempt = true;
    let nothing = fs::File::open("/dev/null").map_err(internal)?;
    match launch(&plan, &[nothing.as_fd(); 4]) {
        Ok((_, tried)) => {
            process::end(&tried, PATIENCE).map_err(internal)?;
            process::reap(&tried);
            Ok(())
        }
        Err(Refusal::Failed(failure)) => Err(explained(&failure, &Host::look())),
        Err(Refusal::Silent(error)) => Err(internal(error)),
    }
}

/// One of the kernel's counts of namespaces that a user may have.
pub(crate) fn count(name: &str) -> Option<u64> {
    fs::read_to_string(Path::new("/proc/sys/user").join(name)).ok()?.trim().parse().ok()
}

impl Host {
    fn look() -> Self {
        let setting = |name: &str| {
            let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name));
            text.map(|text| text.trim().to_owned()).unwrap_or_default()
        };
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let filtered = status
            .lines()
            .any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() != "0"));
        let marked =
            ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
        Self {
            none_of: KINDS.into_iter().filter(|kind| count(kind) == Some(0)).collect(),
            switched_off: setting("unprivileged_userns_clone") == "0",
            apparmor: setting("apparmor_restrict_unprivileged_userns") == "1",
            container: marked || filtered,
        }
    }
}

/// What to do about it.
fn explained(failure: &Failure, host: &Host) -> Error {
    let refused = matches!(failure.errno, libc::EPERM | libc::EACCES);
    let (message, hint) = if let [kind, ..] = host.none_of[..] {
        (
            format!("this host lets nobody make namespaces of one kind (user.{kind} is 0)"),
            format!("sudo sysctl user.{kind}=10000; to keep it, write it into /etc/sysctl.d"),
        )
    } else if host.switched_off {
        (
            "this host lets only root make user namespaces".to_owned(),
            "sudo sysctl kernel.unprivileged_userns_clone=1; to keep it, write it into \
             /etc/sysctl.d"
                .to_owned(),
        )
    } else if host.apparmor && refused {
        ("AppArmor keeps this program from using user namespaces".to_owned(), PROFILE.to_owned())
    } else if failure.errno == libc::ENOSPC || failure.errno == libc::EUSERS {
        (
            "no more namespaces can be made".to_owned(),
            "end some, or raise the counts in /proc/sys/user; namespaces nest 32 deep at most"
                .to_owned(),
        )
    } else if failure.step == Step::Proc && refused {
        (
            "parts of /proc are hidden here, so no sandbox can have its own".to_owned(),
            "in a container, start it with --security-opt systempaths=unconfined (Docker), \
             --security-opt unmask=ALL (Podman) or procMount: Unmasked (Kubernetes)"
                .to_owned(),
        )
    } else if host.container && refused {
        (
            "the container this runs in forbids namespaces".to_owned(),
            "start it with --security-opt seccomp=unconfined --security-opt \
             systempaths=unconfined --security-opt apparmor=unconfined, or use the engine outside"
                .to_owned(),
        )
    } else {
        let cause = io::Error::from_raw_os_error(failure.errno);
        (
            format!("an ordinary user cannot make a sandbox here ({:?}): {cause}", failure.step),
            "start the server as root (sudo atoll serve)".to_owned(),
        )
    };
    let cause = io::Error::from_raw_os_error(failure.errno);
    let source = format!("{:?} {}: {cause}", failure.step, failure.what);
    Error::unavailable(message).hint(hint).because(io::Error::new(cause.kind(), source))
}

const PROFILE: &str = "allow it: printf 'abi <abi/4.0>,\\nprofile atoll %s flags=(unconfined) { \
    userns, }\\n' \"$(command -v atoll)\" | sudo tee /etc/apparmor.d/atoll && sudo \
    apparmor_parser -r /etc/apparmor.d/atoll; or for every program: sudo sysctl \
    kernel.apparmor_restrict_unprivileged_userns=0";

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(step: Step, errno: i32, host: &Host) -> String {
        let error = explained(&Failure { step, what: "/secret".to_owned(), errno }, host);
        assert!(!error.message().contains("secret"), "{error}");
        error.advice().unwrap_or_default().to_owned()
    }

    #[test]
    fn each_obstacle_has_its_own_way_out() {
        let free = Host::default();
        let none = Host { none_of: vec!["max_user_namespaces"], ..Host::default() };
        let debian = Host { switched_off: true, ..Host::default() };
        let ubuntu = Host { apparmor: true, ..Host::default() };
        let container = Host { container: true, ..Host::default() };
        for (step, errno, host, part) in [
            (Step::Clone, libc::ENOSPC, &none, "sysctl user.max_user_namespaces=10000"),
            (Step::Clone, libc::EPERM, &debian, "kernel.unprivileged_userns_clone=1"),
            (Step::MakeRoot, libc::EACCES, &ubuntu, "/etc/apparmor.d/atoll"),
            (Step::MapIds, libc::EPERM, &ubuntu, "apparmor_restrict_unprivileged_userns=0"),
            (Step::Proc, libc::EPERM, &container, "systempaths=unconfined"),
            (Step::Proc, libc::EPERM, &free, "systempaths=unconfined"),
            (Step::Clone, libc::EPERM, &container, "seccomp=unconfined"),
            (Step::Clone, libc::ENOSPC, &free, "/proc/sys/user"),
            (Step::Clone, libc::EPERM, &free, "as root"),
            // AppArmor is not to blame for what is not refused.
            (Step::Clone, libc::EINVAL, &ubuntu, "as root"),
        ] {
            let told = hint(step, errno, host);
            assert!(told.contains(part), "{step:?} {errno} {host:?}: {told}");
        }
    }
}
