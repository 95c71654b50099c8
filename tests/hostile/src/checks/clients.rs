//! D04, D05: clients of the server that stop reading, or hang up.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use atoll_engine::Reason;
use atoll_types::id::ProcessId;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};

use crate::{
    check::{Check, check, claim},
    ground::PATIENCE,
    run::{SOON, eventually, within},
    served::Served,
    stage::Stage,
};

/// What one process writes, and the most the server may hold of it for a client that does not
/// read: its own buffers and the socket's.
const MUCH: u64 = 12 << 20;
const HELD: u64 = 3 << 20;

/// Clients of each kind that hang up, and tasks a server may have made meanwhile to keep.
const CLIENTS: usize = 16;
const KEPT: usize = 8;

const NAIVE: &str = "a server that reads on for clients that do not";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("D04", "a_client_that_stops_reading_costs_little_and_holds_up_nobody", stopped)
            .against(NAIVE),
        check("D05", "clients_that_hang_up_leave_nothing_behind", hung_up).against(NAIVE),
    ]
}

/// Four clients read a little and stop. Another one gets everything, and of the four's the server
/// has taken no more than its buffers hold.
async fn stopped(stage: Arc<Stage>) -> Result<()> {
    Served::during(&stage, async |served| {
        let process = served.start_process(&format!("head -c {MUCH} /dev/zero")).await?;
        let mut idle = Vec::new();
        for _ in 0..4 {
            idle.push(served.attached(process).await?);
        }

        let mut reader = served.attached(process).await?;
        let mut read = 0_u64;
        let mut buffer = vec![0; 1 << 16];
        let reading = async {
            loop {
                match reader.read(&mut buffer).await? {
                    0 => return std::io::Result::Ok(()),
                    count => read += count as u64,
                }
            }
        };
        let ended = tokio::time::timeout(PATIENCE, reading).await;
        claim(matches!(ended, Ok(Ok(()))), || format!("{read} bytes came, then: {ended:?}"))?;
        // The real server's bytes are written in letters, which are more.
        claim(read + (1 << 16) >= MUCH, || format!("only {read} bytes came"))?;

        let most = || served.taken.bytes().iter().take(4).copied().max().unwrap_or_default();
        anyhow::ensure!(served.taken.bytes().iter().take(4).all(|taken| *taken > 0), "none began");
        if stage.weak {
            eventually(|| async { Ok(most() > HELD) }).await?;
        } else {
            settled(most).await?;
        }
        let taken = served.taken.bytes();
        claim(most() <= HELD, || format!("taken for clients that do not read: {taken:?}"))?;
        drop(idle);
        Ok(())
    })
    .await
}

/// Waits until a number has not changed for a while.
async fn settled(number: impl Fn() -> u64) -> Result<()> {
    let deadline = Instant::now() + SOON;
    let mut last = None;
    while last.replace(number()) != Some(number()) {
        anyhow::ensure!(Instant::now() < deadline, "the server never stops reading");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    Ok(())
}

/// Clients follow a quiet process and a busy one, execute something, feed one who does not read;
/// then they hang up. What they executed ends; what was started goes on; no task is left. Those who
/// fed are noticed to be gone when what they fed ends: what they sent is still in the way.
async fn hung_up(stage: Arc<Stage>) -> Result<()> {
    Served::during(&stage, async |served| {
        let quiet = served.start_process("echo ready; exec sleep 1000").await?;
        let busy = served.start_process("while :; do echo busy; sleep 0.02; done").await?;
        let before = served.tasks()?;

        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(served.attached(quiet).await?);
            clients.push(served.attached(busy).await?);
        }
        if !stage.weak {
            clients.extend(executing(served).await?);
        }
        let deaf = served.start_deaf("exec sleep 1000").await?;
        if !stage.weak {
            clients.extend(feeding(served, deaf).await?);
        }
        let during = served.tasks()?;
        anyhow::ensure!(during >= before + CLIENTS, "{before} tasks, then {during}");
        drop(clients);
        served.sandbox().kill(deaf).await?;

        // In the control they stay for ever; one look shows that.
        let wait = if stage.weak { Duration::from_secs(1) } else { SOON };
        let few = || async { Ok(served.tasks()? <= before + KEPT) };
        let gone = within(wait, few).await?;
        let after = served.tasks()?;
        claim(gone, || format!("{before} tasks, {during} with clients, then {after}"))?;
        ended(served, &[quiet, busy], deaf).await
    })
    .await
}

/// Clients that wait for the result of something long.
async fn executing(served: &Served) -> Result<Vec<UnixStream>> {
    let mut clients = Vec::new();
    let started = served.sandbox().processes().await?.len();
    for _ in 0..CLIENTS {
        let body = r#"{"command": ["sleep", "1000"]}"#;
        clients.push(served.client("POST", "/execute", body).await?);
    }
    let all =
        eventually(|| async { Ok(served.sandbox().processes().await?.len() >= started + CLIENTS) });
    anyhow::ensure!(all.await?, "the executions did not start");
    Ok(clients)
}

/// Clients that have more to say than a process that never reads takes.
async fn feeding(served: &Served, deaf: ProcessId) -> Result<Vec<UnixStream>> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let path = format!("/processes/{deaf}/stdin");
        let mut client = served.feeder(&path, 8 << 20).await?;
        let piece = vec![0; 1 << 16];
        // As much as it takes: more than a pipe holds, and so somebody waits.
        while let Ok(written) =
            tokio::time::timeout(Duration::from_millis(200), client.write(&piece)).await
        {
            anyhow::ensure!(written? > 0, "the server hung up");
        }
        clients.push(client);
    }
    Ok(clients)
}

/// What clients waited for was cancelled, as was the deaf one; what was started on its own lives.
async fn ended(served: &Served, started: &[ProcessId], deaf: ProcessId) -> Result<()> {
    let right = eventually(|| async {
        Ok(served.sandbox().processes().await?.iter().all(|process| {
            let waited_for = process.argv == ["sleep", "1000"] || process.id == deaf;
            let reason = process.outcome.as_ref().map(|outcome| outcome.reason);
            reason == waited_for.then_some(Reason::Cancelled)
        }))
    })
    .await?;
    let told = served.sandbox().processes().await?;
    claim(right, || format!("{told:?}"))?;
    let kept = started.iter().all(|id| told.iter().any(|process| process.id == *id));
    anyhow::ensure!(kept, "{started:?} of {told:?}");
    served.sandbox().files().list("/").await.context("the sandbox answers")?;
    Ok(())
}
