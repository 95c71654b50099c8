//! H07-H10: the kernel's calls.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::refused;
use crate::{
    check::{Check, check, claim},
    snapshot,
    stage::Stage,
    world::Weakness,
};

const UNFILTERED: [Weakness; 1] = [Weakness::Seccomp];
const WHAT: &str = "no system call filter";

/// What the filter answers where it refuses.
const INJECTED: [&str; 3] = ["EPERM", "ENOSYS", "SIGSYS"];

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("H07", "every_system_call_is_answered_as_committed", sweep).against(WHAT),
        check("H08", "the_x32_interface_is_refused_whole", x32)
            .no_control("this kernel may lack the interface: the unfiltered answer is noted"),
        check("H08", "the_32_bit_interface_is_refused_whole", legacy).against(WHAT),
        check("H09", "only_common_socket_families_are_there", sockets).against(WHAT),
        check("H10", "the_filter_is_on_every_thread_and_survives_programs", threads).against(WHAT),
    ]
}

/// Refusals are compared by their errno; all else is `allowed`, since what a call without sense
/// answers is the kernel's business.
fn verdicts(told: &Value) -> Result<BTreeMap<String, String>> {
    let answers = told.as_object().context("answers")?;
    Ok(answers
        .iter()
        .map(|(number, answer)| {
            let answer = answer.as_str().unwrap_or_default();
            let kept = INJECTED.contains(&answer) || answer == "not called";
            (number.clone(), if kept { answer } else { "allowed" }.to_owned())
        })
        .collect())
}

async fn sweep(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &UNFILTERED).await?;
    let found = json!(verdicts(&ground.probe(&["sweep"]).await?)?);
    let committed = snapshot::committed(&*stage.world.subject, "syscalls.json", &found)?;
    let mut missing = Vec::new();
    let mut different = Vec::new();
    for (number, expected) in committed.as_object().context("a table")? {
        let answer = &found[number];
        // A call this kernel does not have proves nothing about the filter that would allow it.
        if expected == "allowed" && answer == "ENOSYS" {
            missing.push(number.clone());
        } else if answer != expected {
            different.push(format!("{number}: committed {expected}, found {answer}"));
        }
    }
    claim(different.is_empty(), || different.join("; "))?;
    if !missing.is_empty() {
        let numbers = missing.join(" ");
        stage.world.note(format!("H07 vacuous here: allowed calls this kernel lacks: {numbers}"));
    }
    same_without_filter(&stage, &found).await
}

/// Tells which refusals this kernel would have given by itself.
async fn same_without_filter(stage: &Stage, found: &Value) -> Result<()> {
    if stage.weak {
        return Ok(());
    }
    let ground = stage.unfiltered().await?;
    let bare = json!(verdicts(&ground.probe(&["sweep"]).await?)?);
    let refusals = found.as_object().context("a table")?.iter();
    let refusals: Vec<_> =
        refusals.filter(|(_, answer)| INJECTED.iter().any(|i| *answer == i)).collect();
    let proven = refusals.iter().filter(|(number, answer)| bare[*number] != **answer).count();
    let all = refusals.len();
    stage.world.note(format!(
        "H07: {proven} of {all} refusals are the filter's; the kernel itself would answer the \
         other {} alike (no such call, or no right): vacuous here",
        all - proven
    ));
    claim(proven > 0, || "the filter changes nothing".to_owned())
}

async fn x32(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let told = ground.probe(&["sweep-x32"]).await?;
    refused(&told, &["ENOSYS", "SIGSYS", "EPERM"])?;
    let bare = stage.unfiltered().await?.probe(&["sweep-x32"]).await?;
    if bare == told {
        stage.world.note("H08 vacuous here: this kernel has no x32 interface".to_owned());
    }
    Ok(())
}

async fn legacy(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &UNFILTERED).await?;
    let told = ground.probe(&["sweep-legacy"]).await?;
    refused(&told, &["ENOSYS", "SIGSYS", "EPERM", "SIGSEGV"])
}

/// Unix, internet and the part of netlink that tells about interfaces.
async fn sockets(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &UNFILTERED).await?;
    let told = ground.probe(&["sockets"]).await?;
    let mut wrong = Vec::new();
    for (name, answer) in told.as_object().context("attempts")? {
        let answer = answer.as_str().unwrap_or_default();
        let words: Vec<&str> = name.split(' ').collect();
        let may_work = match words[..] {
            ["socket", "1" | "2" | "10" | "16", kind] => {
                kind != "raw" || ["1", "16"].contains(&words[1])
            }
            ["pair", "1"] | ["netlink", "0"] => true,
            _ => false,
        };
        // Families that work may still not have every type; the others get the filter's answer.
        let refused = REFUSED.contains(&answer)
            || (["1", "2", "10", "16"].iter().any(|known| words.get(1) == Some(known))
                && answer != "ok");
        if !may_work && !refused {
            wrong.push(format!("{name}: {answer}"));
        }
        let needed = ["socket 1 stream", "socket 2 stream", "socket 10 stream", "pair 1"];
        anyhow::ensure!(!needed.contains(&&**name) || answer == "ok", "{name}: {answer}");
    }
    claim(wrong.is_empty(), || wrong.join(", "))
}

/// The filter's answer to a socket, and to `io_uring`.
const REFUSED: [&str; 3] = ["EPERM", "EACCES", "ENOSYS"];

async fn threads(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &UNFILTERED).await?;
    for _ in 0..2 {
        let mut told = &ground.probe(&["threads", "3"]).await?;
        for level in 0..4 {
            let tasks = told["tasks"].as_array().context("tasks")?;
            let sealed = json!(["2", "1", "0000000000000000"]);
            claim(tasks.len() == 4 && tasks.iter().all(|task| *task == sealed), || {
                format!("threads of program {level}: {told}")
            })?;
            told = &told["below"];
        }
    }
    Ok(())
}
