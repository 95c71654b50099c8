//! M: variables, and files that programs read when they start.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context as _, Result};
use atoll_engine::{Command, ErrorKind};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::Value;

use crate::{
    check::{Check, check, claim},
    ground::{Ground, probe},
    stage::{Place, Stage},
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("M01", "only_variables_that_were_given_are_there", variables)
            .against("the host, as nobody"),
        check("M02", "variables_that_make_programs_run_others_reach_none_of_ours", loaders)
            .against("a helper that is the sandbox's own shell"),
        check("M02", "a_variable_that_is_none_is_refused_or_kept_as_it_is", odd)
            .no_control("there is no weaker way to pass variables"),
        check("M03", "files_that_programs_read_at_their_start_reach_none_of_ours", start_files)
            .against("a helper that is the sandbox's own shell"),
    ]
}

/// What a sandbox may have without being told to.
const OWN: [&str; 12] = [
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "SHELL", "TERM", "TMPDIR", "TZ", "PWD",
    "HOSTNAME",
];

async fn variables(stage: Arc<Stage>) -> Result<()> {
    let mut spec = stage.usual();
    spec.env.insert("GIVEN".to_owned(), "by the spec".to_owned());
    let place = stage.place(spec).await?;

    let told = place.probe(&["environment"]).await?;

    let names: Vec<&String> = told.as_object().context("variables")?.keys().collect();
    let strangers: Vec<&&String> =
        names.iter().filter(|name| ***name != "GIVEN" && !OWN.contains(&name.as_str())).collect();
    claim(strangers.is_empty(), || format!("nobody gave {strangers:?}"))?;
    if let Place::Inside(_) = place {
        anyhow::ensure!(told["GIVEN"] == "by the spec", "{told}");
    }
    stage.canary.absent_from("the variables", told.to_string().as_bytes())
}

/// A script that leaves a mark when anything reads it.
const TRAP: &str = "echo sprung >> /home/user/mark\n";

async fn set_trap(ground: &Ground, names: &[&str]) -> Result<()> {
    for name in names {
        let content = futures_util::stream::iter([Ok(Bytes::from_static(TRAP.as_bytes()))]);
        ground.sandbox.files().write(name, content.boxed()).await?;
    }
    Ok(())
}

/// Everything the agent does for us, with the trap set.
async fn everything(ground: &Ground, env: &BTreeMap<String, String>) -> Result<()> {
    let files = ground.sandbox.files();
    files.list(".").await?;
    files.make_directory("made").await?;
    files.copy("trap", "made/copy").await?;
    files.rename("made/copy", "made/moved").await?;
    files.set_mode("made/moved", 0o755).await?;
    files.stat("made/moved").await?;
    files.remove("made").await?;
    let ran = ground.run(Command { env: env.clone(), ..probe(&["environment"]) }).await?;
    anyhow::ensure!(ran.outcome.succeeded(), "{}", ran.told());
    let told: Value = serde_json::from_slice(&ran.stdout)?;
    for (name, value) in env {
        anyhow::ensure!(told[name] == **value, "{name} did not arrive: {told}");
    }
    ground.sandbox.usage().await?;
    ground.sandbox.processes().await?;
    Ok(())
}

async fn not_sprung(ground: &Ground) -> Result<()> {
    match ground.sandbox.files().stat("mark").await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        answer => claim(false, || format!("something of ours read the guest's file: {answer:?}")),
    }
}

async fn loaders(stage: Arc<Stage>) -> Result<()> {
    let trap = "/home/user/trap";
    let env: BTreeMap<String, String> = [
        ("LD_PRELOAD", "/home/user/trap"),
        ("LD_LIBRARY_PATH", "/home/user"),
        ("LD_AUDIT", "/home/user/trap"),
        ("BASH_ENV", trap),
        ("ENV", trap),
        ("PYTHONSTARTUP", trap),
        ("NODE_OPTIONS", "--require=/home/user/trap"),
        ("GIT_SSH_COMMAND", "sh /home/user/trap"),
        ("PATH", "/home/user"),
        ("IFS", "/"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let mut spec = stage.usual();
    spec.env.clone_from(&env);
    let ground = stage.sandbox(spec).await?;
    set_trap(&ground, &["trap"]).await?;

    everything(&ground, &env).await?;
    if stage.weak {
        let helper = Command::new(["/bin/bash", "-c", "exit 0"]);
        ground.run(Command { env: env.clone(), ..helper }).await?;
    }

    not_sprung(&ground).await
}

async fn start_files(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let names = [
        "trap",
        ".bashrc",
        ".profile",
        ".bash_profile",
        ".npmrc",
        ".gitconfig",
        ".git/hooks/post-checkout",
        "sitecustomize.py",
        "usercustomize.py",
        "ls",
        "sh",
        "cat",
    ];
    set_trap(&ground, &names).await?;

    everything(&ground, &BTreeMap::new()).await?;
    if stage.weak {
        ground.run(Command::new(["/bin/bash", "--login", "-c", "exit 0"])).await?;
    }

    not_sprung(&ground).await
}

async fn odd(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let with = |name: &str, value: &str| Command {
        env: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        ..probe(&["environment"])
    };

    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0B", "x"), ("A", "x\0B=y")] {
        let answer = ground.sandbox.start(with(name, value)).await;
        let kind = answer.as_ref().map_err(atoll_engine::Error::kind);
        claim(kind == Err(ErrorKind::Invalid), || format!("{name:?}={value:?}: {answer:?}"))?;
    }
    let told = ground.told(with("LINES", "one\nEVIL=two")).await?;
    claim(told["LINES"] == "one\nEVIL=two" && told.get("EVIL").is_none(), || told.to_string())?;
    // More than the kernel takes in one piece: an error that names no fault of ours.
    let answer = ground.sandbox.start(with("LONG", &"x".repeat(1 << 20))).await;
    let kind = answer.as_ref().map_err(atoll_engine::Error::kind);
    let typed = matches!(kind, Err(ErrorKind::Invalid | ErrorKind::Exhausted | ErrorKind::Denied));
    claim(typed, || format!("a mebibyte in one variable: {answer:?}"))?;
    ground.answers().await
}
