//! What `/proc`, `/sys` and the mount table show and let one change (I-1 to I-6).

use std::{fs, io::Read as _};

use serde_json::{Map, Value, json};

use crate::{posture, word};

/// Tries to write to each of the kernel's switches (I-1).
pub(crate) fn switches() -> Value {
    let targets = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/domainname",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/ns_last_pid",
        "/proc/sys/kernel/pid_max",
        "/proc/sys/kernel/shmmax",
        "/proc/sys/kernel/msgmax",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/fs/binfmt_misc/register",
        "/proc/sys/fs/mqueue/msg_max",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/net/ipv4/ip_unprivileged_port_start",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sysrq-trigger",
        "/proc/irq/default_smp_affinity",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/uevent_helper",
        "/sys/class/net/lo/mtu",
        "/sys/power/state",
    ];
    let answers: Map<String, Value> = targets
        .iter()
        .map(|&path| {
            // Opening is refused or it is not: nothing is ever written.
            let file = fs::OpenOptions::new().write(true).open(path);
            (path.to_owned(), json!(word::io(file)))
        })
        .collect();
    Value::Object(answers)
}

/// Reads what tells of the kernel or the hardware (I-2): how many bytes came, or why none.
pub(crate) fn secrets() -> Value {
    let targets = [
        "/proc/kcore",
        "/proc/keys",
        "/proc/key-users",
        "/proc/timer_list",
        "/proc/sched_debug",
        "/proc/latency_stats",
        "/proc/kmsg",
        "/proc/kpagecount",
        "/proc/kpageflags",
        "/proc/vmallocinfo",
        "/proc/slabinfo",
        "/proc/interrupts",
        "/proc/acpi",
        "/proc/scsi",
        "/sys/firmware",
        "/sys/kernel/security",
        "/sys/kernel/debug",
        "/sys/kernel/vmcoreinfo",
        "/sys/kernel/notes",
        "/sys/module",
        "/sys/devices/virtual/powercap",
        "/sys/class/dmi",
    ];
    let mut answers: Map<String, Value> =
        targets.iter().map(|&path| (path.to_owned(), json!(readable(path)))).collect();
    answers.insert("addresses".to_owned(), json!(addresses()));
    Value::Object(answers)
}

/// `empty`, `content`, or the reason.
fn readable(path: &str) -> String {
    if fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() { "content" } else { "empty" }.to_owned()
            }
            Err(error) => word::io::<()>(Err(error)),
        };
    }
    let mut buffer = [0_u8; 256];
    match fs::OpenOptions::new().read(true).open(path).and_then(|mut file| file.read(&mut buffer)) {
        Ok(0) => "empty".to_owned(),
        Ok(_) => "content".to_owned(),
        Err(error) => word::io::<()>(Err(error)),
    }
}

/// Whether the kernel's symbols are shown with their addresses.
fn addresses() -> String {
    match fs::read_to_string("/proc/kallsyms") {
        Ok(text) => {
            let told = text.lines().take(100).any(|line| !line.starts_with("0000000000000000"));
            if told { "content" } else { "empty" }.to_owned()
        }
        Err(error) => word::io::<()>(Err(error)),
    }
}

/// The processes that can be seen, and what can be seen of the first (I-3).
pub(crate) fn processes() -> Value {
    let seen: Vec<Value> = posture::names("/proc")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .map(|name| {
            let status = fs::read_to_string(format!("/proc/{name}/status")).unwrap_or_default();
            let field = |field: &str| {
                let line = status.lines().find(|line| line.starts_with(field))?;
                Some(line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
            };
            json!({
                "process": name, "name": field("Name:"), "user": field("Uid:"),
                "numbers": field("NSpid:"),
            })
        })
        .collect();
    let first: Map<String, Value> = ["root/etc", "environ", "cwd/.", "fd", "mem", "maps", "exe"]
        .iter()
        .map(|name| ((*name).to_owned(), json!(readable(&format!("/proc/1/{name}")))))
        .collect();
    json!({ "seen": seen, "first": first })
}

/// The mount table, as it is (I-4, I-6).
pub(crate) fn mounts() -> Value {
    json!({
        "mountinfo": fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
        "mounts": fs::read_to_string("/proc/self/mounts").unwrap_or_default(),
    })
}

/// Control groups: what one is told, what one may write (I-5).
pub(crate) fn control_groups(places: &[String]) -> Value {
    let mut writable = Vec::new();
    let mut seen = 0_u32;
    let mut waiting = places.to_vec();
    while let Some(directory) = waiting.pop() {
        if seen > 5000 {
            break;
        }
        if word::io(fs::create_dir(format!("{directory}/atoll-probe"))) == "ok" {
            fs::remove_dir(format!("{directory}/atoll-probe")).ok();
            writable.push(format!("{directory}/"));
        }
        for name in posture::names(&directory) {
            seen += 1;
            let path = format!("{directory}/{name}");
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if metadata.is_dir() {
                waiting.push(path);
            } else if metadata.is_file() && fs::OpenOptions::new().write(true).open(&path).is_ok() {
                writable.push(path);
            }
        }
    }
    json!({
        "own": fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        "writable": writable,
        "seen": seen,
    })
}
