//! H01: what a guest finds itself to be, whichever way it was started.

use std::{fs, sync::Arc};

use anyhow::{Context as _, Result};
use atoll_engine::Command;
use serde_json::{Value, json};

use crate::{
    check::{Check, check, claim},
    ground::{Ground, PROBE, probe},
    snapshot,
    stage::Stage,
    world::Weakness,
};

const WEAK: [Weakness; 1] = [Weakness::Seccomp];
const WHAT: &str = "no system call filter";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("H01", "a_program_started_by_its_words_has_the_posture", by_words).against(WHAT),
        check("H01", "a_program_started_by_the_shell_has_the_posture", by_shell).against(WHAT),
        check("H01", "the_second_and_later_programs_have_the_posture", later).against(WHAT),
        check("H01", "programs_started_at_once_have_the_posture", at_once).against(WHAT),
        check("H01", "a_program_started_after_finding_the_sandbox_again_has_the_posture", again)
            .against(WHAT),
    ]
}

async fn by_words(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &WEAK).await?;
    let told = ground.probe(&["posture"]).await?;
    compare(&stage, &told)
}

async fn by_shell(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &WEAK).await?;
    // The shell adds variables of its own; a shell that replaces itself adds nothing else.
    let line = format!("unset PWD OLDPWD SHLVL _; exec {PROBE} posture");
    let told = ground.told(Command::shell(line)).await?;
    compare(&stage, &told)
}

async fn later(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &WEAK).await?;
    ground.shell("exit 0").await?;
    for _ in 0..3 {
        compare(&stage, &ground.probe(&["posture"]).await?)?;
    }
    Ok(())
}

async fn at_once(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &WEAK).await?;
    let all = (0..6).map(|_| ground.probe(&["posture"]));
    for told in futures_util::future::join_all(all).await {
        compare(&stage, &told?)?;
    }
    Ok(())
}

async fn again(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &WEAK).await?;
    let found: Ground = stage.attach_again(&ground, &WEAK).await?;
    let told = found.told(probe(&["posture"])).await?;
    compare(&stage, &told)
}

/// Compares what holds on every host with what was committed.
fn compare(stage: &Stage, told: &Value) -> Result<()> {
    let found = portable(told)?;
    let committed = snapshot::committed(&*stage.world.subject, "posture.json", &found)?;
    let differences = snapshot::differences(&committed, &found);
    let score = told["oom_score_adj"].as_str().and_then(|score| score.parse::<i32>().ok());
    claim(score.is_some_and(|score| score >= 0), || {
        format!("the kernel spares it when memory is short: {score:?}")
    })?;
    claim(differences.is_empty(), || format!("the posture differs: {}", differences.join("; ")))
}

/// The posture without what differs from host to host, and with its relation to the host said.
fn portable(told: &Value) -> Result<Value> {
    let mut found = told.clone();
    let mut own = serde_json::Map::new();
    for (kind, here) in told["namespaces"].as_object().context("namespaces")? {
        let host = fs::read_link(format!("/proc/self/ns/{kind}"))
            .map(|target| target.display().to_string())
            .unwrap_or_default();
        own.insert(kind.clone(), json!(if *here == host { "the host's" } else { "own" }));
    }
    found["namespaces"] = Value::Object(own);
    for map in ["user_map", "group_map"] {
        let words: Vec<u64> = told[map]
            .as_str()
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        found[map] = match words[..] {
            [inside, outside, count] => json!({
                "inside": inside, "count": count, "outside_is_nobody_else": outside >= 100_000,
            }),
            _ => json!(words),
        };
    }
    // Each hierarchy on a line of its own; what matters is that none is told where it is.
    let groups = told["control_groups"].as_str().unwrap_or_default();
    let paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    found["control_groups"] = json!(paths.filter(|path| *path != "/").collect::<Vec<_>>());
    // The rest is the host's own: derived from its memory, set by its administrator, or a matter
    // of how this program itself was started.
    let limits = found["limits"].as_object_mut().context("limits")?;
    limits.retain(|name, _| ["Max core file size", "Max open files"].contains(&name.as_str()));
    let all = found.as_object_mut().context("a posture")?;
    for inherited in ["nice", "oom_score_adj", "personality"] {
        all.remove(inherited);
    }
    // Named after the sandbox; that it is not the host's is what matters.
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    found["host_name"] = json!(if told["host_name"] == host.trim() { "the host's" } else { "own" });
    // The directories at the top that this host happens to have besides (lib32, libx32).
    if let Some(top) = found["top"].as_array_mut() {
        top.retain(|name| !name.as_str().is_some_and(|name| name.starts_with("lib")));
    }
    Ok(found)
}
