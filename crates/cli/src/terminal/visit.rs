//! One visit to a sandbox's terminal, from coming to leaving.

use std::{future::pending, time::Duration};

use atoll_client::{Error, Shown, Terminal, TerminalInput, TerminalOutput};
use atoll_types::process::ProcessEnd;
use bytes::Bytes;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    time::timeout,
};

use super::{DetachKeys, Tty, keys::Lookout, watch::Watch};
use crate::{
    failure::{Doing as _, Failure, Result},
    signal::{Asked, Stop},
};

/// What is typed at once.
const PIECE: usize = 4096;
/// How much that was typed may wait for the guest, in pieces.
const WAITING: usize = 256;
/// What comes before a pause of this length was shown before.
const PAUSE: Duration = Duration::from_millis(200);

/// How a visit ended.
#[derive(Debug)]
pub(crate) enum Visit {
    Ended(ProcessEnd),
    /// The user left with the keys for it.
    Left,
    /// A signal came.
    Asked(Asked),
    /// The user's own terminal is gone.
    Closed,
    Lost(Error),
}

/// Shows a terminal here and types what is typed here, until either side has enough.
///
/// `back` says that this is not its first visitor: what comes first was shown before.
pub(crate) async fn visit(
    terminal: Terminal,
    back: bool,
    keys: DetachKeys,
    stop: &mut Stop,
) -> Result<Visit> {
    let resized = signal(SignalKind::window_change()).doing(|| "cannot hear of sizes".into())?;
    let tty = Tty::take()?;
    let (output, input) = terminal.split();
    let (typed, waiting) = mpsc::channel(WAITING);
    let mut watch = Watch::default();
    let visit = tokio::select! {
        visit = show(output, &tty, &mut watch, back) => visit,
        visit = read(&tty, Lookout::new(keys), typed) => visit,
        lost = send(input, waiting, resized) => Visit::Lost(lost),
        asked = stop.asked() => Visit::Asked(asked),
    };
    tty.leave(&watch).await;
    Ok(visit)
}

async fn show(mut output: TerminalOutput, tty: &Tty, watch: &mut Watch, back: bool) -> Visit {
    let mut before = back;
    let mut on = Vec::new();
    loop {
        let shown = if before {
            let Ok(shown) = timeout(PAUSE, output.next()).await else {
                before = false;
                continue;
            };
            shown
        } else {
            output.next().await
        };
        match shown {
            Ok(Some(Shown::Bytes(data))) => {
                on.clear();
                watch.pass(&data, before, &mut on);
                if tty.write(&on).await.is_err() {
                    return Visit::Closed;
                }
            }
            // The screen shows what it can; what is missing was more than anyone keeps.
            Ok(Some(Shown::Skipped(_) | Shown::Refused(_))) => {}
            Ok(Some(Shown::Ended(end))) => return Visit::Ended(end),
            Ok(None) => return pending().await,
            Err(error) => return Visit::Lost(error),
        }
    }
}

async fn read(tty: &Tty, mut lookout: Lookout, typed: mpsc::Sender<Bytes>) -> Visit {
    let mut buffer = [0; PIECE];
    loop {
        let Ok(count @ 1..) = tty.read(&mut buffer).await else { return Visit::Closed };
        let mut on = Vec::new();
        let left = lookout.pass(&buffer[..count], &mut on);
        if !on.is_empty() && typed.send(on.into()).await.is_err() {
            return pending().await;
        }
        if left {
            return Visit::Left;
        }
    }
}

/// Passes on what was typed, and the terminal's size whenever it changes; returns why it cannot.
async fn send(
    mut input: TerminalInput,
    mut waiting: mpsc::Receiver<Bytes>,
    mut resized: Signal,
) -> Error {
    loop {
        let sent = tokio::select! {
            Some(data) = waiting.recv() => input.write(data).await,
            Some(()) = resized.recv() => match Tty::size_of_here() {
                Ok(size) => input.resize(size).await,
                Err(Failure { .. }) => Ok(()),
            },
            else => return pending().await,
        };
        if let Err(error) = sent {
            // Why it broke, or that the process has ended, is told by what is shown.
            return timeout(Duration::from_secs(5), pending()).await.unwrap_or(error);
        }
    }
}
