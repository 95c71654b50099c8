//! H02-H05: rights a guest does not have and cannot get.

use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc};

use anyhow::{Context as _, Result};
use atoll_engine::Command;
use serde_json::Value;

use super::refused;
use crate::{
    check::{Check, check, claim},
    ground::Ground,
    stage::{Place, Stage},
    world::{SHARED, Weakness},
};

const NESTING: [Weakness; 2] = [Weakness::Seccomp, Weakness::NestedUsers];

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("H02", "the_mount_tree_cannot_be_changed", mounts)
            .against("no system call filter, and user namespaces"),
        check("H02", "what_is_shown_read_only_cannot_be_written", overwrite)
            .against("a writable mount of a directory that is everybody's"),
        check("H03", "no_namespace_can_be_made_or_entered", namespaces)
            .against("no system call filter, and user namespaces"),
        check("H04", "no_user_namespace_can_be_nested", nested)
            .against("no system call filter, and user namespaces"),
        check("H05", "a_program_that_claims_its_owners_rights_gets_none", claimed_rights)
            .against("the host, as nobody"),
    ]
}

async fn mounts(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &NESTING).await?;
    if !stage.weak {
        refused(&ground.probe(&["mounts", "/probe"]).await?, &["EPERM"])?;
    }
    refused(&ground.probe(&["mounts", "/probe", "nested"]).await?, &["EPERM"])
}

async fn overwrite(stage: Arc<Stage>) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("atoll-shown-").tempdir()?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777))?;
    let file = directory.path().join("shared");
    fs::write(&file, SHARED)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666))?;
    let mut spec = stage.usual();
    spec.mounts.push(crate::stage::shown(directory.path().to_owned(), "/shown", stage.weak));
    let ground = stage.sandbox(spec).await?;

    let told = ground.probe(&["overwrite", "/shown/shared"]).await?;

    refused(&told, &["EROFS"])?;
    let names: Vec<_> = fs::read_dir(directory.path())?.flatten().map(|e| e.file_name()).collect();
    let content = fs::read_to_string(&file).unwrap_or_default();
    claim(names == ["shared"] && content == SHARED, || format!("{names:?}: {content}"))
}

async fn namespaces(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &NESTING).await?;
    let mut told = ground.probe(&["namespaces"]).await?;
    let attempts = told.as_object_mut().context("attempts")?;
    let clone3 = attempts.remove("clone3").context("clone3")?;
    refused(&told, &["EPERM", "EACCES"])?;
    // So that the C library falls back to the call whose arguments a filter can see.
    claim(clone3 == "ENOSYS", || format!("clone3: {clone3}"))
}

async fn nested(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &NESTING).await?;
    refused(&ground.probe(&["nested"]).await?, &["EPERM"])
}

/// A copy of the probe with the bits that make a program its owner: owned by the host's root, and
/// by the sandbox's own.
async fn claimed_rights(stage: Arc<Stage>) -> Result<()> {
    let place = stage.place(stage.usual()).await?;
    match &place {
        Place::Bare(bare) => {
            let mut bare = bare.clone();
            bare.program = stage.world.probe_directory().join("as-owner");
            unprivileged(&bare.probe(&["identity"]).await?, "65534")
        }
        Place::Inside(ground) => {
            let identity = Command::new(["/probe/as-owner", "identity"]);
            unprivileged(&ground.told(identity).await?, "1000")?;
            own_root(&stage, ground).await
        }
    }
}

async fn own_root(stage: &Stage, first: &Ground) -> Result<()> {
    let told = first.probe(&["posture"]).await?;
    let outside: u32 = told["user_map"]
        .as_str()
        .and_then(|map| map.split_whitespace().nth(1)?.parse().ok())
        .context("the host's id of the sandbox's root")?;
    let path = stage.world.probe_directory().join(format!("as-{outside}"));
    fs::copy(stage.world.probe_directory().join("atoll-probe"), &path)?;
    std::os::unix::fs::chown(&path, Some(outside), Some(outside))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755))?;
    let identity = Command::new([format!("/probe/as-{outside}"), "identity".to_owned()]);
    let told = first.told(identity).await;
    fs::remove_file(&path)?;
    unprivileged(&told?, "1000")
}

fn unprivileged(told: &Value, user: &str) -> Result<()> {
    let is = |ids: &Value| ids.as_array().is_some_and(|ids| ids.iter().all(|id| id == user));
    let none = |set: &str| told["capabilities"][set] == "0000000000000000";
    let nothing = is(&told["user"])
        && is(&told["group"])
        && ["permitted", "effective", "inheritable", "ambient"].into_iter().all(none);
    claim(nothing, || format!("rights were gained: {told}"))
}
