//! Waiting, and running a check as a test.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use libtest_mimic::Failed;

use crate::{
    check::{Broken, Check},
    stage::Stage,
    world::World,
};

/// How long something may take to become true on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// How long a check may take, and how long a control of chance may try.
const LONG: Duration = Duration::from_secs(150);
const TRIES: Duration = Duration::from_mins(1);

/// Asks again and again until it is true or [`SOON`] has passed.
pub async fn eventually<F, R>(ask: F) -> Result<bool>
where
    F: FnMut() -> R,
    R: Future<Output = Result<bool>>,
{
    within(SOON, ask).await
}

/// Asks again and again until it is true or so much time has passed.
pub async fn within<F, R>(time: Duration, mut ask: F) -> Result<bool>
where
    F: FnMut() -> R,
    R: Future<Output = Result<bool>>,
{
    let deadline = Instant::now() + time;
    loop {
        if ask().await? {
            return Ok(true);
        }
        if Instant::now() > deadline {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Runs the check as it is: it must hold, and the invariants with it.
pub fn sound(world: &Arc<World>, check: &Check) -> Result<(), Failed> {
    let _turn = check.heavy.then(|| world.turn());
    let (result, after) = world.block_on(once(Arc::clone(world), check.clone(), false));
    result.and(after).map_err(|error| told(&error))
}

/// Runs the check against its control: it must fail, by its claim and nothing else.
pub fn control(world: &Arc<World>, check: &Check, chance: bool) -> Result<(), Failed> {
    let _turn = check.heavy.then(|| world.turn());
    let deadline = Instant::now() + TRIES;
    loop {
        let (result, after) = world.block_on(once(Arc::clone(world), check.clone(), true));
        after.map_err(|error| told(&error.context("after the control")))?;
        match result {
            Err(error) if error.downcast_ref::<Broken>().is_some() => return Ok(()),
            Err(error) => return Err(told(&error.context("the control itself went wrong"))),
            Ok(()) if chance && Instant::now() < deadline => {}
            Ok(()) => return Err("the check holds where it cannot: it shows nothing".into()),
        }
    }
}

/// What the check found, and what the invariants found after it.
async fn once(world: Arc<World>, check: Check, weak: bool) -> (Result<()>, Result<()>) {
    let stage = match Stage::new(world, weak) {
        Ok(stage) => Arc::new(stage),
        Err(error) => return (Err(error), Ok(())),
    };
    let mut body = tokio::spawn((check.run)(Arc::clone(&stage)));
    let result = match tokio::time::timeout(LONG, &mut body).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(anyhow!("the check panicked: {panic}")),
        Err(_) => {
            body.abort();
            Err(anyhow!("the check did not end"))
        }
    };
    (result, stage.close().await)
}

fn told(error: &anyhow::Error) -> Failed {
    format!("{error:#}").into()
}
