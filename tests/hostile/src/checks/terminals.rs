//! L: terminals.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use atoll_engine::{
    Command, Error, ErrorKind, Event, Events, Offsets, ProcessId, SCROLLBACK, TerminalSize,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::refused;
use crate::{
    check::{Broken, Check, check, claim},
    ground::{Ground, PATIENCE, Ran, probe},
    run::eventually,
    stage::Stage,
    world::Weakness,
};

/// How long a control looks at what will never happen. Longer would show the same.
const STUCK: Duration = Duration::from_secs(2);

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("L01", "nobody_types_for_another_or_takes_a_terminal", steal)
            .against("no system call filter"),
        check("L02", "a_flood_of_a_terminal_is_kept_in_part", flood)
            .against("a pipe, whose output is all kept"),
        check("L02", "a_storm_of_sizes_is_survived_and_none_is_refused", sizes)
            .against("a terminal of the host, which takes any size"),
        check("L02", "keys_reach_the_foreground_and_nobody_else", keys)
            .against("a pipe, where keys are bytes"),
        check("L03", "a_job_outlives_its_readers_and_all_who_return_see_the_same", returning)
            .against("a service that ends what nobody reads"),
        check("L03", "what_two_write_at_once_comes_whole", writers)
            .against("writers that send their lines in halves"),
    ]
}

/// With a terminal, unless this is a control whose terminal is none.
fn on_terminal(command: Command, terminal: bool) -> Command {
    if terminal { command.with_terminal(24, 80) } else { command.with_stdin() }
}

async fn steal(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &[Weakness::Seccomp]).await?;
    let other = on_terminal(probe(&["sleep", "300"]), true);
    let other = ground.sandbox.start(other).await?;

    let ran = ground.run(on_terminal(probe(&["steal-terminals"]), true)).await?;

    ground.sandbox.kill(other).await?;
    let told = told(&ran)?;
    anyhow::ensure!(told.as_object().is_some_and(|told| told.len() >= 8), "{told}");
    refused(&told, &["EPERM", "EACCES"])
}

/// The evidence of a probe at a terminal, which shows what is typed, too.
fn told(ran: &Ran) -> Result<Value> {
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let told = text.find('{').map_or("", |start| &text[start..]);
    serde_json::from_str(told).with_context(|| ran.told())
}

/// All that can be read of a process's output, and where its first byte is.
async fn read(events: Events) -> Result<(Option<u64>, Vec<u8>)> {
    let (mut first, mut seen) = (None, Vec::new());
    let mut events = events;
    let reading = async {
        while let Some(event) = events.next().await {
            if let Event::Output { offset, data, .. } = event? {
                first.get_or_insert(offset);
                seen.extend_from_slice(&data);
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, reading).await.context("the output does not end")??;
    Ok((first, seen))
}

async fn flood(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let terminal = if stage.weak { "" } else { "stty -opost; " };
    let line = format!("{terminal}head -c 8388608 /dev/zero | tr '\\0' x; printf end");
    let process = ground.sandbox.start(on_terminal(Command::shell(line), !stage.weak)).await?;

    // Nobody reads: it ends all the same.
    let ended = eventually(|| async {
        Ok(ground.sandbox.processes().await?.iter().all(|process| process.outcome.is_some()))
    });
    claim(ended.await?, || "it waits for a reader".to_owned())?;
    let events = ground.sandbox.attach(process, Offsets::default()).await?;
    let (first, seen) = read(events).await?;

    let kept = seen.len() as u64;
    let bounded = (SCROLLBACK..=2 * SCROLLBACK).contains(&kept) && first > Some(0);
    claim(bounded, || format!("{kept} bytes are kept, from {first:?} on"))?;
    claim(seen.ends_with(b"xend"), || "the last of it is not there".to_owned())?;
    ground.answers().await
}

async fn sizes(stage: Arc<Stage>) -> Result<()> {
    const NONE: [(u16, u16); 6] =
        [(0, 0), (0, 80), (24, 0), (65535, 65535), (65535, 1), (1, 65535)];
    if stage.weak {
        return any_size(&NONE);
    }
    let ground = stage.sandbox(stage.usual()).await?;
    let line = "trap : WINCH; echo ready; \
                while [ ! -e go ]; do echo noise; done; stty -opost; printf 'size '; stty size";
    let command = on_terminal(Command::shell(line), true);
    let (process, _) = ground.start_and_hear(command).await?;

    let storm = (0..4_u16).map(|task| {
        let sandbox = Arc::clone(&ground.sandbox);
        tokio::spawn(async move {
            for number in 1..=200_u16 {
                let size = TerminalSize { rows: number, columns: task * 200 + number };
                sandbox.resize(process, size).await?;
                let (rows, columns) = NONE[usize::from(number) % NONE.len()];
                let none = sandbox.resize(process, TerminalSize { rows, columns }).await;
                let kind = none.as_ref().map_err(Error::kind);
                claim(kind == Err(ErrorKind::Invalid), || format!("{rows}×{columns}: {none:?}"))?;
            }
            anyhow::Ok(())
        })
    });
    for task in futures_util::future::join_all(storm).await {
        task??;
    }
    for (rows, columns) in NONE {
        let answer =
            ground.sandbox.start(Command::new(["true"]).with_terminal(rows, columns)).await;
        let kind = answer.as_ref().map_err(Error::kind);
        claim(kind == Err(ErrorKind::Invalid), || format!("{rows}×{columns}: {answer:?}"))?;
    }
    ground.sandbox.resize(process, TerminalSize { rows: 33, columns: 77 }).await?;
    ground.shell("touch go").await?;

    let events = ground.sandbox.attach(process, Offsets::default()).await?;
    let (_, seen) = read(events).await?;
    claim(seen.ends_with(b"size 33 77\n"), || {
        format!("{:?}", String::from_utf8_lossy(&seen[seen.len().saturating_sub(40)..]))
    })?;
    ground.answers().await
}

/// What the kernel says to sizes that are none.
fn any_size(none: &[(u16, u16)]) -> Result<()> {
    use rustix::{
        pty::{OpenptFlags, openpt},
        termios::{Winsize, tcsetwinsize},
    };
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    for &(ws_row, ws_col) in none {
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        let taken = tcsetwinsize(&terminal, size).is_ok();
        claim(!taken, || format!("{ws_row}×{ws_col} is taken"))?;
    }
    Ok(())
}

/// `^C`, `^Z` and `^\`, each to whoever is in the foreground then. Its leader, who is in the
/// background, and somebody at the next terminal go on.
async fn keys(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let next = on_terminal(Command::new(["cat"]), true);
    let next = ground.sandbox.start(next).await?;
    let process = ground.sandbox.start(on_terminal(probe(&["key-presses"]), !stage.weak)).await?;

    for (turn, key) in [b"\x03", b"\x1a", b"\x1c"].into_iter().enumerate() {
        let heard = if stage.weak {
            // Whoever is in the foreground never ends, and nobody comes after.
            tokio::time::timeout(STUCK, said(&ground, process, turn)).await
        } else {
            Ok(said(&ground, process, turn).await)
        };
        if heard.is_err() {
            ground.sandbox.kill(process).await?;
            return Err(Broken("the key is not heard".to_owned()).into());
        }
        heard??;
        ground.sandbox.write_stdin(process, Bytes::from_static(key)).await?;
    }
    let ran = ground.follow(process, Offsets::default()).await?;

    let told = told(&ran)?;
    let expected = json!({ "front": ["ended 2", "stopped 20", "ended 3"], "behind lives": true });
    claim(told == expected, || told.to_string())?;
    let processes = ground.sandbox.processes().await?;
    let lives = processes.iter().any(|process| process.id == next && process.outcome.is_none());
    claim(lives, || "somebody at another terminal was hit".to_owned())?;
    ground.sandbox.kill(next).await?;
    Ok(())
}

/// Waits until the probe says that this turn has come.
async fn said(ground: &Ground, process: ProcessId, turn: usize) -> Result<()> {
    let mut events = ground.sandbox.attach(process, Offsets::default()).await?;
    let mut heard = Vec::new();
    let word = format!("ready {turn} ");
    while let Some(event) = events.next().await {
        match event? {
            Event::Output { data, .. } => heard.extend_from_slice(&data),
            Event::Ended(outcome) => anyhow::bail!("it ended too early: {outcome:?}"),
        }
        let text = String::from_utf8_lossy(&heard);
        if let Some((_, rest)) = text.split_once(&word)
            && rest.contains('\n')
        {
            return Ok(());
        }
    }
    anyhow::bail!("the output ended")
}

/// Readers come and go while a job runs; two that come back to the same byte see the same.
async fn returning(stage: Arc<Stage>) -> Result<()> {
    let ground = stage.sandbox(stage.usual()).await?;
    let line = "i=0; while [ ! -e go ]; do i=$((i+1)); echo line $i; sleep 0.01; done; echo over";
    let (process, _) = ground.start_and_hear(on_terminal(Command::shell(line), true)).await?;
    if stage.weak {
        ground.sandbox.kill(process).await?;
    }
    for _ in 0..10 {
        drop(ground.sandbox.attach(process, Offsets::default()).await?);
    }

    let from = Offsets { stdout: 6, stderr: 0 };
    let one = ground.sandbox.attach(process, from).await?;
    let other = ground.sandbox.attach(process, from).await?;
    ground.shell("touch go").await?;
    let (one, other) = (read(one).await?, read(other).await?);

    claim(one == other && one.0 == Some(6), || format!("{:?} and {:?}", one.0, other.0))?;
    claim(one.1.ends_with(b"over\r\n"), || "the job did not go on".to_owned())
}

/// Two write lines to one terminal at once. Each line is one write.
async fn writers(stage: Arc<Stage>) -> Result<()> {
    const LINES: usize = 100;
    let ground = stage.sandbox(stage.usual()).await?;
    let line = "stty raw -echo; echo ready; exec cat";
    let (process, _) = ground.start_and_hear(on_terminal(Command::shell(line), true)).await?;
    let write = async |text: String| ground.sandbox.write_stdin(process, text.into()).await;
    if stage.weak {
        for number in 0..LINES {
            for piece in ["one", "two", &format!(" {number};"), &format!(" {number};")] {
                write(piece.to_owned()).await?;
            }
        }
    } else {
        let all = async |name: &str| {
            for number in 0..LINES {
                write(format!("{name} {number};")).await?;
            }
            anyhow::Ok(())
        };
        let (one, two) = tokio::join!(all("one"), all("two"));
        one.and(two)?;
    }

    let expected: usize = ["one", "two"]
        .iter()
        .flat_map(|name| (0..LINES).map(move |number| format!("{name} {number};").len()))
        .sum();
    let mut events = ground.sandbox.attach(process, Offsets::default()).await?;
    let mut seen = Vec::new();
    let reading = async {
        while seen.len() < expected + "ready\n".len() {
            if let Event::Output { data, .. } = events.next().await.context("an event")?? {
                seen.extend_from_slice(&data);
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, reading).await.context("not all came back")??;
    ground.sandbox.kill(process).await?;
    let text = String::from_utf8_lossy(&seen).into_owned();
    let text = text.trim_start_matches("ready").trim_start();
    for name in ["one", "two"] {
        let lines = text.split(';').filter(|line| line.starts_with(name));
        let expected = (0..LINES).map(|number| format!("{name} {number}"));
        claim(lines.eq(expected), || format!("not whole, or not in order: {text}"))?;
    }
    Ok(())
}
