//! E: disk.

use std::sync::Arc;

use anyhow::Result;
use atoll_engine::Limits;
use futures_util::StreamExt as _;

use crate::{
    check::{Check, check, claim},
    stage::{Stage, usual},
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("E01", "a_full_disk_is_full_at_its_limit", full).against("no disk limit"),
        check("E02", "room_beyond_the_limit_cannot_be_reserved", reserved).against("no disk limit"),
        check("E02", "a_file_of_holes_is_read_a_piece_at_a_time", holes)
            .no_control("reading all of it at once would need the memory it must not use"),
        check("E03", "files_without_content_are_counted", many).against("no disk limit"),
    ]
}

/// In a control nothing is limited, so whatever is tried there must be small.
fn limits(stage: &Stage) -> Limits {
    let base = Limits { memory: None, ..usual() };
    stage.limits(base, Limits { disk: None, ..base })
}

async fn full(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.spec(limits(&stage))).await?;

    let told = ground.probe(&["fill", "full", "48"]).await?;

    let written = told["written"].as_u64().unwrap_or(u64::MAX);
    let stopped = ["ENOSPC", "EDQUOT"].iter().any(|errno| told["error"] == *errno);
    claim(stopped && written <= 17 << 20, || format!("written to 16 MiB: {told}"))?;
    // What it may have, it can have.
    anyhow::ensure!(written >= 8 << 20, "less than half of the disk could be used: {told}");
    ground.shell("rm full && echo again > small && cat small").await?;
    Ok(())
}

async fn reserved(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.spec(limits(&stage))).await?;
    let sizes: &[u64] = if stage.weak { &[48 << 20] } else { &[48 << 20, 1 << 40] };
    for size in sizes {
        let told = ground.probe(&["reserve", "reserved", &size.to_string()]).await?;
        let refused = ["ENOSPC", "EDQUOT", "EFBIG"].iter().any(|errno| told["reserve"] == *errno);
        claim(refused, || format!("{size} bytes in 16 MiB: {told}"))?;
    }
    Ok(())
}

/// A tebibyte of nothing: the first pieces come, and nobody needs memory for the rest.
async fn holes(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let told = ground.probe(&["sparse", "holes", &(1_u64 << 40).to_string()]).await?;
    if told["sparse"] != "ok" {
        return Ok(());
    }

    let mut content = ground.sandbox.files().read("holes").await?;
    let mut seen = 0_usize;
    while seen < 8 << 20 {
        let Some(chunk) = content.next().await else { break };
        let chunk = chunk?;
        claim(chunk.len() <= 4 << 20, || format!("a piece of {} bytes", chunk.len()))?;
        seen += chunk.len();
    }
    drop(content);

    claim(seen >= 8 << 20, || format!("only {seen} bytes came"))?;
    ground.answers().await
}

async fn many(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.spec(limits(&stage))).await?;

    let told = ground.probe(&["many-files", "many", "100000"]).await?;

    let stopped = ["ENOSPC", "EDQUOT"].iter().any(|errno| told["error"] == *errno);
    claim(stopped, || format!("files in 16 MiB: {told}"))?;
    ground.answers().await
}
