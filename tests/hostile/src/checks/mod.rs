//! The checks, by the letters of the catalogue.

mod agent;
mod channels;
mod clients;
mod corpus;
mod disk;
mod engines;
mod environment;
mod files;
mod images;
mod input;
mod kernel;
mod memory;
mod network;
mod output;
mod ports;
mod posture;
mod processes;
mod proxy;
mod race;
mod search;
mod surface;
mod system;
mod terminals;
mod time;
mod watch;

use anyhow::Result;
use serde_json::Value;

use crate::check::{Check, claim};

/// Every check of the tier.
pub fn all() -> Vec<Check> {
    [
        posture::checks(),
        kernel::checks(),
        surface::checks(),
        time::checks(),
        memory::checks(),
        processes::checks(),
        input::checks(),
        output::checks(),
        clients::checks(),
        disk::checks(),
        files::checks(),
        race::checks(),
        search::checks(),
        watch::checks(),
        system::checks(),
        channels::checks(),
        terminals::checks(),
        network::checks(),
        ports::checks(),
        proxy::checks(),
        environment::checks(),
        engines::checks(),
        images::checks(),
        agent::checks(),
    ]
    .concat()
}

/// Fails the check unless every attempt in `told` was answered with one of `answers`.
fn refused(told: &Value, answers: &[&str]) -> Result<()> {
    let Some(attempts) = told.as_object() else {
        anyhow::bail!("the probe told no attempts: {told}")
    };
    anyhow::ensure!(!attempts.is_empty(), "the probe attempted nothing");
    let others: Vec<String> = attempts
        .iter()
        .filter(|(_, answer)| !answer.as_str().is_some_and(|answer| answers.contains(&answer)))
        .map(|(name, answer)| format!("{name}: {answer}"))
        .collect();
    claim(others.is_empty(), || format!("not answered with {answers:?}: {}", others.join(", ")))
}
