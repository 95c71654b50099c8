//! Directories of the host shown inside.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use tempfile::TempDir;

use super::{
    Failure, Stage,
    case::{CaseResult, cases, check, same},
    scratch::Scratch,
};
use crate::{Mount, Spec};

cases![a_mount_shows_a_directory, a_mount_is_read_only_unless_said, a_writable_mount_is_written];

/// A directory of the host that everybody may use, with one file.
fn directory(stage: &Stage) -> Result<TempDir, Failure> {
    let directory = stage.host_directory()?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777))?;
    fs::write(directory.path().join("given"), "given")?;
    Ok(directory)
}

async fn mounted(stage: &Stage, host: &Path, writable: bool) -> Result<Scratch, Failure> {
    let mount = Mount { host: host.into(), guest: "/mnt/shared".into(), writable };
    Scratch::asking(stage, "mount", Spec { mounts: vec![mount], ..stage.spec() }).await
}

async fn a_mount_shows_a_directory(stage: Stage) -> CaseResult {
    let directory = directory(&stage)?;
    let scratch = mounted(&stage, directory.path(), false).await?;

    same("seen", scratch.text("cat /mnt/shared/given").await?, "given".into())?;
    fs::write(directory.path().join("later"), "later")?;
    same("seen later", scratch.text("cat /mnt/shared/later").await?, "later".into())
}

async fn a_mount_is_read_only_unless_said(stage: Stage) -> CaseResult {
    let directory = directory(&stage)?;
    let scratch = mounted(&stage, directory.path(), false).await?;

    for line in ["echo x > /mnt/shared/new", "rm /mnt/shared/given", "chmod 777 /mnt/shared/given"]
    {
        let outcome = scratch.sh(line).await?.outcome;
        check(!outcome.succeeded(), || format!("`{line}` worked"))?;
    }
    let written = scratch.files().write("/mnt/shared/new", super::files::content("x")).await;
    check(written.is_err(), || "a file was written".into())?;
    let left: Vec<_> = fs::read_dir(directory.path())?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    same("what is there", left, vec!["given".to_owned()])
}

async fn a_writable_mount_is_written(stage: Stage) -> CaseResult {
    let directory = directory(&stage)?;
    let scratch = mounted(&stage, directory.path(), true).await?;

    scratch.text("echo x > /mnt/shared/new; rm -f /mnt/shared/given").await?;

    let seen = fs::read_to_string(directory.path().join("new"))?;
    same("seen outside", seen, "x\n".into())
}
