//! B: memory.

use std::sync::Arc;

use anyhow::Result;
use atoll_engine::{LimitHit, Limits, Reason};

use crate::{
    check::{Check, check, claim},
    ground::probe,
    stage::{Stage, usual},
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("B01", "memory_beyond_the_limit_ends_the_guest_alone", beyond)
            .heavy()
            .against("no memory limit"),
        check("B03", "files_in_memory_are_bounded_and_freed", files_in_memory)
            .heavy()
            .against("no disk limit"),
        check("B05", "memory_of_all_processes_is_added_up", together)
            .heavy()
            .against("no memory limit"),
    ]
}

fn no_memory_limit() -> Limits {
    Limits { memory: None, ..usual() }
}

async fn beyond(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.spec(stage.limits(usual(), no_memory_limit()))).await?;

    let ran = ground.run(probe(&["allocate", "160"])).await?;

    ran.ended(Reason::Oom)?;
    claim(ran.outcome.limits_hit.contains(&LimitHit::Memory), || ran.told())?;
    claim(ran.outcome.sandbox_survived, || ran.told())?;
    ground.answers().await
}

async fn together(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.spec(stage.limits(usual(), no_memory_limit()))).await?;

    let ran = ground.run(probe(&["allocate-together", "6", "24"])).await?;

    let hit = ran.outcome.limits_hit.contains(&LimitHit::Memory);
    claim(hit, || format!("144 of 64 MiB were held at once: {}", ran.told()))?;
    ground.quiet().await?;
    ground.answers().await
}

/// What is written to the sandbox's own places is limited, and gone with the sandbox; the census
/// after the check sees that its control group, which would hold the charge, is gone.
async fn files_in_memory(stage: Arc<Stage>) -> Result<()> {
    let without = Limits { memory: None, disk: None, ..usual() };
    for place in ["/tmp", "/dev/shm"] {
        let limits = stage.limits(Limits { memory: None, ..usual() }, without);
        let ground = stage.sandbox(stage.spec(limits)).await?;
        let told = ground.probe(&["fill", &format!("{place}/full"), "48"]).await?;
        let bounded = told["written"].as_u64().is_some_and(|written| written <= 17 << 20)
            && ["ENOSPC", "EDQUOT"].iter().any(|errno| told["error"] == *errno);
        claim(bounded, || format!("{place} took more than the disk limit: {told}"))?;
    }
    Ok(())
}
