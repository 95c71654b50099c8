//! F04: paths that change while they are used.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::files::stream;
use crate::{
    check::{Check, check},
    ground::probe,
    stage::{Stage, Yard},
    witness::content,
};

/// How long the sandbox's own service is tried.
const LONG: Duration = Duration::from_secs(5);

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("F04", "a_directory_that_turns_into_a_link_leads_nowhere_else", flipped)
            .heavy()
            .eventually("a service that resolves paths on the host"),
    ]
}

/// `tree/place` is a directory and a link to the host's secrets by turns, as fast as can be.
async fn flipped(stage: Arc<Stage>) -> Result<()> {
    let canary = stage.canary.directory().display().to_string();
    let yard = stage.yard(stage.usual()).await?;
    let make =
        format!("mkdir -p tree/place; echo own > tree/place/readable; ln -s {canary} tree/link");
    yard.shell(&make).await?;
    let flipper = Flipper::start(&yard).await?;

    let until = Instant::now() + LONG;
    let mut result = Ok(());
    while Instant::now() < until && result.is_ok() {
        result = once(&stage, &yard).await;
    }

    flipper.stop(&yard).await?;
    result
}

async fn once(stage: &Stage, yard: &Yard) -> Result<()> {
    let (files, canary) = (yard.files(), &stage.canary);
    if let Ok(read) = content(files, "tree/place/readable").await {
        canary.absent_from("a file behind a link that changes", &read)?;
    }
    let _ = files.write("tree/place/new", stream("written")).await;
    let _ = files.make_directory("tree/place/directory").await;
    let _ = files.set_mode("tree/place/readable", 0o666).await;
    let _ = files.copy("tree/place/readable", "tree/place/copy").await;
    let _ = files.rename("tree/place/new", "tree/place/renamed").await;
    let _ = files.remove("tree/place/renamed").await;
    canary.unchanged()
}

/// Whoever exchanges the two: a guest, or, for the control, a thread.
enum Flipper {
    Inside(atoll_engine::ProcessId),
    Thread(Arc<AtomicBool>, std::thread::JoinHandle<()>),
}

impl Flipper {
    async fn start(yard: &Yard) -> Result<Self> {
        match yard {
            Yard::Inside(ground) => {
                let command = probe(&["flip", "tree/place", "tree/link"]);
                Ok(Self::Inside(ground.start_and_hear(command).await?.0))
            }
            Yard::Naive(files, _) => {
                let (one, other) = (files.root.join("tree/place"), files.root.join("tree/link"));
                let stop = Arc::new(AtomicBool::new(false));
                let stopped = Arc::clone(&stop);
                let thread = std::thread::spawn(move || {
                    while !stopped.load(Ordering::Relaxed) {
                        let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
                    }
                });
                Ok(Self::Thread(stop, thread))
            }
        }
    }

    async fn stop(self, yard: &Yard) -> Result<()> {
        match (self, yard) {
            (Self::Inside(process), Yard::Inside(ground)) => {
                ground.sandbox.kill(process).await?;
            }
            (Self::Thread(stop, thread), _) => {
                stop.store(true, Ordering::Relaxed);
                thread.join().map_err(|_| anyhow::anyhow!("the flipper panicked"))?;
            }
            (Self::Inside(_), Yard::Naive(..)) => {}
        }
        Ok(())
    }
}
