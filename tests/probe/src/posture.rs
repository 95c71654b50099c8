//! What a guest process finds itself to be (H01, H10, M01).

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{ffi::OsStrExt as _, process::CommandExt as _},
    process::Command,
    thread,
};

use serde_json::{Value, json};

use crate::{sys, word};

/// Everything about this process that a sandbox decides.
pub(crate) fn all() -> Value {
    let status = status("/proc/self/status");
    json!({
        "user": words(&status, "Uid"),
        "group": words(&status, "Gid"),
        "groups": words(&status, "Groups"),
        "capabilities": {
            "inheritable": status.get("CapInh"),
            "permitted": status.get("CapPrm"),
            "effective": status.get("CapEff"),
            "bounding": status.get("CapBnd"),
            "ambient": status.get("CapAmb"),
        },
        "no_new_privileges": status.get("NoNewPrivs"),
        "seccomp": status.get("Seccomp"),
        "umask": status.get("Umask"),
        "signals": {
            "blocked": status.get("SigBlk"),
            "ignored": status.get("SigIgn"),
            "pending": status.get("ShdPnd"),
        },
        "secure_bits": prctl(libc::PR_GET_SECUREBITS),
        "dumpable": prctl(libc::PR_GET_DUMPABLE),
        "keep_capabilities": prctl(libc::PR_GET_KEEPCAPS),
        "child_subreaper": subreaper(),
        "personality": sys::call(libc::SYS_personality, [0xffff_ffff, 0, 0, 0, 0, 0]).ok(),
        "nice": nice(),
        "scheduler": sys::call(libc::SYS_sched_getscheduler, [0; 6]).ok(),
        "oom_score_adj": line("/proc/self/oom_score_adj"),
        "limits": limits(),
        "descriptors": descriptors(),
        "directory": std::env::current_dir().map(|path| path.display().to_string()).ok(),
        "environment": environment(),
        "session_leader": session() == i64::from(std::process::id()),
        "terminal": word::io(fs::File::open("/dev/tty")),
        "first_process": std::process::id() == 1,
        "namespaces": namespaces(),
        "user_map": line("/proc/self/uid_map"),
        "group_map": line("/proc/self/gid_map"),
        "set_groups": line("/proc/self/setgroups"),
        "control_groups": fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        "host_name": line("/proc/sys/kernel/hostname"),
        "devices": names("/dev"),
        "top": names("/"),
        "keyring": word::answer(keyring()),
        "nested_user_namespace": word::outcome(sys::isolated(|| {
            sys::call(libc::SYS_unshare, [libc::CLONE_NEWUSER as usize, 0, 0, 0, 0, 0])
        })),
    })
}

/// The filter and privileges of every thread, here and in programs started from here (H10).
pub(crate) fn threads(depth: u32) -> Value {
    let (ready, started) = std::sync::mpsc::channel();
    let hold = std::sync::Arc::new(std::sync::Barrier::new(4));
    let handles: Vec<_> = (0..3)
        .map(|_| {
            let (ready, hold) = (ready.clone(), std::sync::Arc::clone(&hold));
            thread::spawn(move || {
                ready.send(()).ok();
                hold.wait();
            })
        })
        .collect();
    for _ in 0..3 {
        started.recv().ok();
    }
    let tasks: Vec<Value> = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
        .map(|task| {
            let status = status(&format!("{}/status", task.path().display()));
            json!([status.get("Seccomp"), status.get("NoNewPrivs"), status.get("CapEff")])
        })
        .collect();
    hold.wait();
    for handle in handles {
        handle.join().ok();
    }
    let below = (depth > 0).then(|| {
        let output = Command::new("/proc/self/exe")
            .arg0("renamed")
            .args(["threads", &(depth - 1).to_string()])
            .output();
        output.map_or_else(
            |error| json!(error.to_string()),
            |output| serde_json::from_slice(&output.stdout).unwrap_or_default(),
        )
    });
    json!({ "tasks": tasks, "below": below })
}

fn status(path: &str) -> BTreeMap<String, String> {
    fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

fn words(status: &BTreeMap<String, String>, name: &str) -> Vec<String> {
    let text = status.get(name).map(String::as_str).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn prctl(option: i32) -> Option<i64> {
    sys::call(libc::SYS_prctl, [option as usize, 0, 0, 0, 0, 0]).ok()
}

fn subreaper() -> i32 {
    let mut value = -1_i32;
    let pointer = &raw mut value as usize;
    let option = libc::PR_GET_CHILD_SUBREAPER as usize;
    sys::call(libc::SYS_prctl, [option, pointer, 0, 0, 0, 0]).ok();
    value
}

/// The kernel's own answer is 20 minus the value, so as never to be negative.
fn nice() -> Option<i64> {
    sys::call(libc::SYS_getpriority, [0; 6]).ok().map(|value| 20 - value)
}

fn session() -> i64 {
    sys::call(libc::SYS_getsid, [0; 6]).unwrap_or(-1)
}

fn keyring() -> sys::Answer {
    sys::call(libc::SYS_keyctl, [0, usize::MAX - 2, 0, 0, 0, 0])
}

fn limits() -> BTreeMap<String, Value> {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    text.lines()
        .skip(1)
        .filter(|line| line.len() > 26)
        .map(|line| {
            let (name, rest) = line.split_at(26);
            let values: Vec<&str> = rest.split_whitespace().take(2).collect();
            (name.trim().to_owned(), json!(values))
        })
        .collect()
}

/// What is open, and as what, except the directory that is read to find out.
fn descriptors() -> BTreeMap<String, String> {
    let entries: Vec<_> = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten().collect();
    entries
        .iter()
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            let target = target.to_string_lossy();
            if target.starts_with("/proc/") && target.ends_with("/fd") {
                return None;
            }
            let kind = target.split([':', '[']).next().unwrap_or_default().to_owned();
            Some((entry.file_name().to_string_lossy().into_owned(), kind))
        })
        .collect()
}

/// Every variable, bytes that are no text replaced.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (text(name.as_bytes()), text(value.as_bytes()))
        })
        .collect()
}

fn namespaces() -> BTreeMap<String, String> {
    names("/proc/self/ns")
        .into_iter()
        .filter_map(|name| {
            let target = fs::read_link(format!("/proc/self/ns/{name}")).ok()?;
            Some((name, target.display().to_string()))
        })
        .collect()
}

pub(crate) fn names(directory: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
