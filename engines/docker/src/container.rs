//! From what is asked for to what the daemon is told.
//!
//! Every setting an image could make for itself is made here: one that is left open would be the
//! image's to choose.

use std::collections::HashMap;

use atoll_engine::Result;
use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};

use crate::{
    config::{Config, Weakness},
    files::{Files, OWN},
    image::Facts,
    limits::Bounds,
    mounts::Shown,
    place::Place,
};

/// What an agent needs to start guests as others and to end them.
const CAPABILITIES: [&str; 4] = ["KILL", "SETGID", "SETPCAP", "SETUID"];

/// Files and directories about the host: empty ones cover them.
const MASKED: [&str; 19] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/cmdline",
    "/proc/interrupts",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/pressure",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/modules",
    "/proc/partitions",
    "/sys",
];

/// Directories whose files are settings of the host.
const READ_ONLY: [&str; 4] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"];

/// Everything a container is made of.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) config: &'a Config,
    pub(crate) bounds: &'a Bounds,
    pub(crate) image: &'a Facts,
    pub(crate) shown: &'a [Shown],
    pub(crate) place: &'a Place,
    pub(crate) runtime: Option<String>,
    pub(crate) labels: HashMap<String, String>,
}

impl Plan<'_> {
    pub(crate) fn weak(&self, weakness: Weakness) -> bool {
        self.config.weak(weakness)
    }

    pub(crate) fn body(&self) -> Result<ContainerCreateBody> {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        Ok(ContainerCreateBody {
            image: Some(self.image.id.clone()),
            hostname: Some("sandbox".to_owned()),
            domainname: Some(String::new()),
            user: Some("0:0".to_owned()),
            entrypoint: words(&[&format!("{OWN}/agent"), "serve", OWN]),
            cmd: Some(Vec::new()),
            working_dir: Some("/".to_owned()),
            healthcheck: Some(HealthConfig { test: words(&["NONE"]), ..Default::default() }),
            stop_signal: Some("SIGKILL".to_owned()),
            tty: Some(false),
            open_stdin: Some(false),
            attach_stdin: Some(false),
            attach_stdout: Some(false),
            attach_stderr: Some(false),
            labels: Some(self.labels.clone()),
            host_config: Some(self.host()?),
            ..Default::default()
        })
    }

    fn host(&self) -> Result<HostConfig> {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        let mut security = vec![];
        if !self.weak(Weakness::NewPrivileges) {
            security.push("no-new-privileges:true".to_owned());
        }
        if self.weak(Weakness::Seccomp) {
            security.push("seccomp=unconfined".to_owned());
        }
        let capable = self.weak(Weakness::Capabilities);
        let bare = self.weak(Weakness::Proc);
        let Files { tmpfs, mounts } = self.files()?;
        Ok(HostConfig {
            privileged: Some(false),
            cap_drop: if capable { None } else { words(&["ALL"]) },
            cap_add: if capable { None } else { words(&CAPABILITIES) },
            security_opt: Some(security),
            readonly_rootfs: Some(!self.weak(Weakness::WritableRoot)),
            network_mode: Some(if self.weak(Weakness::Network) { "host" } else { "none" }.into()),
            // Not the host's own, which Docker would copy otherwise.
            dns: words(&["127.0.0.1"]),
            dns_search: words(&["."]),
            ipc_mode: Some(if self.weak(Weakness::Ipc) { "host" } else { "private" }.into()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            init: Some(false),
            auto_remove: Some(false),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                maximum_retry_count: None,
            }),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            memory: self.bounds.memory,
            // With as much for both together there is no swap.
            memory_swap: self.bounds.memory,
            oom_kill_disable: Some(false),
            pids_limit: self.bounds.pids,
            nano_cpus: self.bounds.nano_cpus,
            // Not 0: see `boot`, which sets those of guests.
            ulimits: Some(vec![ResourcesUlimits {
                name: Some("core".to_owned()),
                soft: Some(1),
                hard: Some(1),
            }]),
            shm_size: Some(self.share(1)),
            masked_paths: if bare { Some(vec![]) } else { words(&MASKED) },
            readonly_paths: if bare { Some(vec![]) } else { words(&READ_ONLY) },
            runtime: self.runtime.clone(),
            tmpfs: Some(tmpfs),
            mounts: Some(mounts),
            ..Default::default()
        })
    }
}
