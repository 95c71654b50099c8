//! The server dies with sessions in full swing; the next one goes on with them.

use std::{process::ExitCode, time::Duration};

use anyhow::{Result, bail};
use atoll_client::{Client, Event};
use atoll_e2e::{Census, Daemon};
use atoll_types::{
    execution::CommandLine,
    id::{ProcessId, SessionId},
    process::{StartProcess, Stream},
    session::{CreateSession, Session, State},
};
use futures_util::StreamExt as _;
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};

const SESSIONS: usize = 20;

/// Counts on one line each, with a file that says when to stop.
const COUNT: &str =
    "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; sleep 0.05; done; echo end $i";

fn main() -> ExitCode {
    atoll_e2e::tell(vec![
        ("after_a_crash_running_processes_go_on_and_no_output_is_lost", || {
            Box::pin(after_a_crash_running_processes_go_on_and_no_output_is_lost())
        }),
        ("a_sandbox_that_died_with_the_server_is_told_lost_and_leaves_nothing", || {
            Box::pin(a_sandbox_that_died_with_the_server_is_told_lost_and_leaves_nothing())
        }),
    ])
}

async fn after_a_crash_running_processes_go_on_and_no_output_is_lost() -> Result<()> {
    let daemon = Daemon::start().await?;
    let client = daemon.client();
    let mut running = Vec::new();
    for _ in 0..SESSIONS {
        let session = client.create_session(&CreateSession::default()).await?;
        let start = StartProcess {
            command: Some(CommandLine::Shell(COUNT.into())),
            ..StartProcess::default()
        };
        let process = client.start_process(&session.session_id, &start).await?;
        running.push((session, process.id));
    }
    let census = Census::learn(daemon.data(), &running[0].0.sandbox_id)?;

    let daemon = daemon.crash_and_restart().await?;
    let client = daemon.client();
    for (Session { session_id: session, .. }, process) in &running {
        let state = client.session(session).await?.state;
        assert!(matches!(state, State::Ready | State::Busy), "{session} is {state:?}");
        counted_without_a_gap(&client, session, *process).await?;
        client.delete_session(session, None).await?;
    }

    assert_eq!(census.left()?, Vec::<String>::new());
    daemon.stop().await?;
    Ok(())
}

async fn a_sandbox_that_died_with_the_server_is_told_lost_and_leaves_nothing() -> Result<()> {
    let daemon = Daemon::start().await?;
    let session = daemon.client().create_session(&CreateSession::default()).await?;
    let census = Census::learn(daemon.data(), &session.sandbox_id)?;

    let daemon = daemon.crash_then(|| end(&census.pids()?)).await?;
    let told = daemon.client().session(&session.session_id).await?;

    assert_eq!(told.state, State::Lost, "{told:?}");
    assert_eq!(census.left()?, Vec::<String>::new());
    daemon.stop().await?;
    Ok(())
}

/// Tells the process to stop and reads all it ever wrote.
async fn counted_without_a_gap(
    client: &Client,
    session: &SessionId,
    process: ProcessId,
) -> Result<()> {
    client.write_bytes(session, "stop", "now").await?;
    let mut events = client.attach_process(session, process, 0, 0).await?;
    let mut output = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_mins(1), events.next()).await? {
            Some(event) => match event? {
                Event::Output { stream: Stream::Stdout, data, .. } => {
                    output.extend_from_slice(&data);
                }
                Event::Output { .. } => {}
                Event::End(end) => {
                    assert_eq!(end.exit_code, Some(0), "{end:?}");
                    break;
                }
            },
            None => bail!("the events ended before the process did"),
        }
    }
    let text = String::from_utf8(output)?;
    let lines: Vec<_> = text.lines().collect();
    let last = lines.len() - 1;
    for (index, line) in lines[..last].iter().enumerate() {
        assert_eq!(*line, (index + 1).to_string());
    }
    assert_eq!(lines[last], format!("end {last}"));
    Ok(())
}

/// Kills processes, as someone at the machine might.
fn end(pids: &[i32]) -> Result<()> {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        match kill_process(pid, Signal::KILL) {
            // The first process of a sandbox takes the others with it.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => bail!(error),
        }
    }
    Ok(())
}
