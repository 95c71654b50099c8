//! Which sandboxes there are.

use std::sync::Arc;

use super::{
    Stage,
    case::{CaseResult, cases, check, same},
    scratch::{Scratch, fresh_id},
};

cases![
    what_lives_is_listed_once,
    every_daemon_lists_the_same,
    what_is_destroyed_is_not_listed,
    what_never_was_is_not_listed,
];

async fn what_lives_is_listed_once(stage: Stage) -> CaseResult {
    let one = Scratch::new(&stage).await?;
    let two = Scratch::new(&stage).await?;

    let listed = stage.engine().list().await?;

    for id in [one.id(), two.id()] {
        same("times", listed.iter().filter(|seen| *seen == id).count(), 1)?;
    }
    Ok(())
}

async fn every_daemon_lists_the_same(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let listed = stage.another_engine().list().await?;

    check(listed.contains(scratch.id()), || format!("not among {listed:?}"))
}

async fn what_is_destroyed_is_not_listed(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.destroy().await?;

    for engine in [Arc::clone(stage.engine()), stage.another_engine()] {
        let listed = engine.list().await?;
        check(!listed.contains(scratch.id()), || format!("still among {listed:?}"))?;
    }
    Ok(())
}

async fn what_never_was_is_not_listed(stage: Stage) -> CaseResult {
    let id = fresh_id();
    stage.engine().destroy(&id).await?;

    same("listed", stage.engine().list().await?.contains(&id), false)
}
