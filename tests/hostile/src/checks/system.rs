//! I: `/proc`, `/sys` and mounts.

use std::{fs, path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::Value;

use super::refused;
use crate::{
    check::{Check, check, claim},
    stage::{Stage, shown},
    world::Weakness,
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("I-1", "the_kernels_switches_cannot_be_written", switches)
            .against("a /proc that is not covered, and guests that are the agent's user"),
        check("I-2", "what_tells_of_the_kernel_is_hidden", secrets).against("the host, as nobody"),
        check("I-3", "only_the_sandboxs_own_processes_are_seen", processes)
            .against("the host, as nobody"),
        check("I-4", "the_mount_table_names_no_neighbour", mount_table)
            .against("a mount of a directory with the neighbour's name"),
        check("I-5", "control_groups_cannot_be_seen_or_changed", control_groups)
            .against("a mount of the host's control groups"),
        check("I-6", "a_mount_of_the_host_does_not_appear_inside", propagation)
            .against("the host, as nobody"),
        check("I-6", "a_sandbox_mounts_nothing_on_the_host", host_mounts)
            .against("a mount on the host meanwhile"),
    ]
}

const ABSENT: [&str; 5] = ["EROFS", "EACCES", "ENOENT", "EPERM", "ENOTDIR"];

async fn switches(stage: Arc<Stage>) -> Result<()> {
    let watched = ["core_pattern", "hostname", "pid_max", "shmmax"]
        .map(|name| format!("/proc/sys/kernel/{name}"));
    let values = || watched.clone().map(|path| fs::read_to_string(path).unwrap_or_default());
    let before = values();
    let ground = stage.weakened(stage.usual(), &[Weakness::Proc, Weakness::Root]).await?;

    let told = ground.probe(&["switches"]).await?;

    refused(&told, &ABSENT)?;
    claim(values() == before, || "a switch of the host changed".to_owned())
}

async fn secrets(stage: Arc<Stage>) -> Result<()> {
    let place = stage.place(stage.usual()).await?;
    let told = place.probe(&["secrets"]).await?;
    refused(&told, &["empty", "EACCES", "ENOENT", "EPERM", "EIO"])
}

async fn processes(stage: Arc<Stage>) -> Result<()> {
    let place = stage.place(stage.usual()).await?;
    let told = place.probe(&["processes"]).await?;
    let seen = told["seen"].as_array().context("processes")?;
    claim(seen.len() <= 8, || format!("{} processes are seen", seen.len()))?;
    let users = ["1000", "0"];
    let strangers: Vec<&Value> = seen
        .iter()
        .filter(|process| {
            let user = process["user"].as_str().unwrap_or_default();
            !users.contains(&user.split(' ').next().unwrap_or_default())
        })
        .collect();
    claim(strangers.is_empty(), || format!("strangers are seen: {strangers:?}"))?;
    refused(&told["first"], &["EACCES", "ENOENT", "EPERM"])
}

/// The neighbour's id, the engine's own directory, the host's secrets: none is named.
async fn mount_table(stage: Arc<Stage>) -> Result<()> {
    let witness = stage.world.witness().context("the witness")?;
    let neighbour = witness.ground.sandbox.id().to_string();
    let mut spec = stage.usual();
    let directory = tempfile::Builder::new().prefix(&format!("of-{neighbour}-")).tempdir()?;
    if stage.weak {
        spec.mounts.push(shown(directory.path().to_owned(), "/shown", false));
    }
    let ground = stage.sandbox(spec).await?;

    let told = ground.probe(&["mount-table"]).await?;

    let text = told.to_string();
    let names: [String; 5] = [
        neighbour,
        stage.world.state_directory().display().to_string(),
        stage.canary.directory().display().to_string(),
        "docker.sock".to_owned(),
        "upperdir=/home".to_owned(),
    ];
    let mut found: Vec<&String> = names.iter().filter(|name| text.contains(&***name)).collect();
    if stage.world.subject.tells_its_directory() {
        let name = stage.world.subject.name();
        stage.world.note(format!("I-4: on {name} the mount table tells the engine's directory"));
        found.retain(|name| **name != names[1]);
    }
    claim(found.is_empty(), || format!("{found:?} in {text}"))
}

async fn control_groups(stage: Arc<Stage>) -> Result<()> {
    let mut spec = stage.usual();
    if stage.weak {
        spec.mounts.push(shown(PathBuf::from("/sys/fs/cgroup"), "/cgroup", false));
    }
    let ground = stage.sandbox(spec).await?;
    let before = ground.sandbox.usage().await?;

    let told = ground.probe(&["control-groups", "/sys/fs/cgroup", "/cgroup"]).await?;

    let writable = told["writable"].as_array().context("writable")?;
    claim(writable.is_empty(), || format!("can be written: {writable:?}"))?;
    claim(told["seen"] == 0, || format!("{} files of control groups are seen", told["seen"]))?;
    let own = told["own"].as_str().context("own")?;
    let outside: Vec<&str> = own.lines().filter(|line| !line.ends_with(":/")).collect();
    claim(outside.is_empty(), || format!("its place is told: {outside:?}"))?;
    let after = ground.sandbox.usage().await?;
    anyhow::ensure!(before.disk_total == after.disk_total, "{before:?} {after:?}");
    // The limit still holds.
    let forks = ground.probe(&["forks", "120"]).await?;
    claim(forks["error"] == "EAGAIN", || format!("the limit is gone: {forks}"))
}

/// Unmounts when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(path: PathBuf) -> Result<Self> {
        fs::create_dir_all(&path)?;
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), None).context("mount on the host")?;
        Ok(Self(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::DETACH).ok();
    }
}

async fn propagation(stage: Arc<Stage>) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("atoll-shown-").tempdir()?;
    let mut spec = stage.usual();
    spec.mounts.push(shown(directory.path().to_owned(), "/shown", false));
    let place = stage.place(spec).await?;

    let name = crate::canary::token()?;
    let mounted = Mounted::new(directory.path().join(&name))?;
    let told = place.probe(&["mount-table"]).await?;
    drop(mounted);

    claim(!told.to_string().contains(&name), || format!("{name} is mounted inside: {told}"))
}

/// While a sandbox lives and works, the host's mount table names nothing of it.
async fn host_mounts(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    ground.answers().await?;
    let id = ground.sandbox.id().to_string();
    let directory = tempfile::tempdir()?;
    let _mounted = if stage.weak { Some(Mounted::new(directory.path().join(&id))?) } else { None };

    let table = fs::read_to_string("/proc/self/mountinfo")?;

    let engine = stage.world.state_directory().display().to_string();
    let found: Vec<&str> =
        table.lines().filter(|line| line.contains(&id) || line.contains(&engine)).collect();
    claim(found.is_empty(), || format!("on the host: {found:?}"))
}
