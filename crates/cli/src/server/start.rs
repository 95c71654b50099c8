//! Starting a private server.

use std::{
    fs,
    io::{self, BufRead as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use atoll_config::Surroundings;

use super::{Found, Mode, Place, Record, find, lock::Lock, ready::Word, stop};
use crate::failure::{Doing as _, Failure, Result};

/// How long a server may take to be ready: it looks after what the last one left first.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often to look whether another command has started the server.
const AGAIN: Duration = Duration::from_millis(10);

/// A longer log is put aside when a server starts.
const LONGEST_LOG: u64 = 4 << 20;

/// The path servers run with; what the user's has does not matter to them.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The socket of the server of a data directory, which is started if there is none.
///
/// A private server of another build is replaced: its sandboxes go on under the new one.
pub(crate) async fn find_or_start(
    place: &Place,
    config: Option<&Path>,
    surroundings: &Surroundings,
) -> Result<PathBuf> {
    if let Some(found) = usable(place).await? {
        return Ok(found.socket);
    }
    place.make()?;
    let deadline = Instant::now() + PATIENCE;
    let _lock = loop {
        if let Some(lock) = Lock::try_take(&place.start_lock())? {
            break lock;
        }
        if Instant::now() > deadline {
            return Err(Failure::new("another command has been starting the server for a minute")
                .hint(format!("its log: {}", place.log().display())));
        }
        tokio::time::sleep(AGAIN).await;
    };
    // Another command may have been quicker.
    if let Some(found) = usable(place).await? {
        return Ok(found.socket);
    }
    if let Some(old) = Record::read(place).filter(|old| old.mode == Mode::Private) {
        stop(place, &old).await?;
    }
    start(place, config, surroundings).await?;
    Ok(place.socket())
}

/// A server that runs, unless it is a private one of another build.
async fn usable(place: &Place) -> Result<Option<Found>> {
    let Some(found) = find(place).await else { return Ok(None) };
    let record = &found.record;
    match record.mode {
        Mode::Private => Ok(record.is_ours().then_some(found)),
        Mode::Serve if record.version == env!("CARGO_PKG_VERSION") => Ok(Some(found)),
        Mode::Serve => Err(Failure::new(format!(
            "the server is version {}, this is {}",
            record.version,
            env!("CARGO_PKG_VERSION")
        ))
        .hint("restart `atoll serve` with this version; its sessions go on")),
    }
}

async fn start(place: &Place, config: Option<&Path>, surroundings: &Surroundings) -> Result {
    let mut command = command(place, config, surroundings)?;
    let said = tokio::task::spawn_blocking(move || -> io::Result<String> {
        let mut child = command.spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            io::BufReader::new(stdout).read_line(&mut line)?;
        }
        if line.is_empty() {
            child.wait()?;
        }
        Ok(line)
    });
    let log = || format!("its log: {}", place.log().display());
    let said = tokio::time::timeout(PATIENCE, said)
        .await
        .map_err(|_| Failure::new("the server did not get ready within a minute").hint(log()))?
        .doing(|| "cannot start the server".into())?
        .doing(|| "cannot start the server".into())?;
    match serde_json::from_str(&said) {
        Ok(Word::Ready) => Ok(()),
        Ok(Word::Failed { message, hint }) => {
            let failure = Failure::new(message);
            Err(hint.into_iter().fold(failure, Failure::hint))
        }
        Err(_) => Err(Failure::new("the server ended before it was ready").hint(log())),
    }
}

fn command(place: &Place, config: Option<&Path>, surroundings: &Surroundings) -> Result<Command> {
    let program = std::env::current_exe().doing(|| "cannot tell where this program is".into())?;
    if fs::metadata(place.log()).is_ok_and(|about| about.len() > LONGEST_LOG) {
        fs::rename(place.log(), place.old_log()).doing(|| "cannot move the old log away".into())?;
    }
    let log = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(place.log())
        .doing(|| "cannot open the server's log".into())?;
    let mut command = Command::new(program);
    command
        .args(["daemon", "run", "--data-dir"])
        .arg(place.directory())
        .current_dir("/")
        .env_clear()
        .envs(surroundings.for_server())
        .env("PATH", PATH)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    Ok(command)
}
