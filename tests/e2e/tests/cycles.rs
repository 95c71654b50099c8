//! Two thousand sandboxes, one after the other, and nothing to show for it.

use std::{fs, process::ExitCode};

use anyhow::{Context as _, Result};
use atoll_client::Client;
use atoll_e2e::{Census, Daemon};
use atoll_types::{
    execution::{CommandLine, ExecuteRequest},
    session::CreateSession,
};

const CYCLES: usize = 2000;
const CLIENTS: usize = 2;

fn main() -> ExitCode {
    atoll_e2e::tell(vec![(
        "two_thousand_sandboxes_leave_nothing_and_the_server_does_not_grow",
        || Box::pin(two_thousand_sandboxes_leave_nothing_and_the_server_does_not_grow()),
    )])
}

async fn two_thousand_sandboxes_leave_nothing_and_the_server_does_not_grow() -> Result<()> {
    let daemon = Daemon::start().await?;
    let first = daemon.client().create_session(&CreateSession::default()).await?;
    let census = Census::learn(daemon.data(), &first.sandbox_id)?;
    daemon.client().delete_session(&first.session_id, None).await?;

    // The first ones fill caches and pools that are then kept.
    cycles(&daemon.client(), 200).await?;
    let before = Held::by(daemon.pid()?)?;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let client = daemon.client();
        clients.spawn(async move { cycles(&client, (CYCLES - 200) / CLIENTS).await });
    }
    while let Some(made) = clients.join_next().await {
        made??;
    }
    let after = Held::by(daemon.pid()?)?;

    assert_eq!(census.left()?, Vec::<String>::new());
    assert!(after.descriptors <= before.descriptors + 8, "before {before:?}, after {after:?}");
    assert!(after.threads <= before.threads + 4, "before {before:?}, after {after:?}");
    assert!(after.memory <= before.memory + (12 << 10), "KiB: before {before:?}, after {after:?}");
    daemon.stop().await?;
    Ok(())
}

/// Create, execute, destroy, so many times.
async fn cycles(client: &Client, count: usize) -> Result<()> {
    let request = ExecuteRequest {
        command: Some(CommandLine::Shell("echo $$ > f; sleep 1000 & cat f".into())),
        ..ExecuteRequest::default()
    };
    for cycle in 0..count {
        let session = client.create_session(&CreateSession::default()).await?;
        let result = client.execute(&session.session_id, &request).await?;
        anyhow::ensure!(result.exit_code == Some(0), "cycle {cycle}: {result:?}");
        client.delete_session(&session.session_id, None).await?;
    }
    Ok(())
}

/// What a process holds.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
    /// Resident, in KiB.
    memory: usize,
}

impl Held {
    fn by(pid: u32) -> Result<Self> {
        let count =
            |what| Ok::<_, std::io::Error>(fs::read_dir(format!("/proc/{pid}/{what}"))?.count());
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|line| line.split_whitespace().next()).context("VmRSS")?;
        Ok(Self { descriptors: count("fd")?, threads: count("task")?, memory: memory.parse()? })
    }
}
