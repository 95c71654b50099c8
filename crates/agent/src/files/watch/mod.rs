//! Telling a host what happens to files.
//!
//! ```text
//!   kernel's queue ──▶ tree: which directory is which ──▶ queue ──▶ host
//!                        │  ▲
//!               directories to watch: a piece of work at a time, with the guest's rights
//! ```
//!
//! Guests can do more, faster, than anybody can tell. So nothing here waits for a host, every
//! queue has an end, and what falls off it is told as an overflow. Where the kernel's own queue
//! ran over it is unknown which directory is which: then all is let go, and after a pause that
//! grows with the work it was, watched anew.

mod event;
mod queue;
mod scan;
mod tree;

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use atoll_agent_protocol::{
    message::{Change, ChangeKind, Done, Failure, response::Answer},
    mux::Stream,
};
use event::Batch;
use queue::Queue;
use rustix::{fs::inotify, io::Errno};
use tokio::{
    io::unix::AsyncFd,
    time::{sleep, timeout},
};
use tree::{State, Tree};

use super::{Files, place::Path, pool::Pool};
use crate::{
    calls::say,
    failure::{exhausted, of_file},
    sys,
};

/// Watches of all hosts together: each has a descriptor and a queue of the kernel's.
const WATCHES: usize = 16;
/// Directories of all watches together.
const DIRECTORIES: usize = 65_536;
/// How long the other half of a move may take to come.
const HALF: Duration = Duration::from_millis(10);
/// The pause after as many events as are read at once.
const BREATH: Duration = Duration::from_millis(5);
/// The shortest and the longest pause before everything is watched anew.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// What all watches may use together.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    watches: AtomicUsize,
    directories: Arc<AtomicUsize>,
}

/// One of the watches there may be.
struct Place(Arc<Bounds>);

impl Place {
    fn take(bounds: &Arc<Bounds>) -> Result<Self, Failure> {
        let place = Self(Arc::clone(bounds));
        if bounds.watches.fetch_add(1, Ordering::Relaxed) < WATCHES {
            return Ok(place);
        }
        Err(exhausted(format!("a sandbox has at most {WATCHES} watches at the same time")))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Says `Done` when all is watched, then what happens, until the directory or the host is gone.
pub(super) async fn watch(
    files: &Files,
    path: &str,
    recursive: bool,
    stream: &Stream,
) -> Result<(), Failure> {
    let path = files.path(path)?;
    let _place = Place::take(&files.watches)?;
    let queue = Queue::default();
    let mut watch = Watch {
        pool: files.pool.clone(),
        bounds: Arc::clone(&files.watches),
        path,
        recursive,
        queue: queue.clone(),
        held: None,
        identity: None,
    };
    watch.begin().await?;
    if !say(stream, Answer::Done(Done { truncated: false })).await {
        return Ok(());
    }
    queue.open();
    tokio::select! {
        result = watch.follow() => {
            result?;
            // What it saw last is told still.
            queue.close();
            tell(&queue, stream).await;
            Ok(())
        }
        () = tell(&queue, stream) => Ok(()),
    }
}

/// Sends what happened until there is no more, or nobody hears it.
async fn tell(queue: &Queue, stream: &Stream) {
    while let Some(change) = queue.next().await {
        if !say(stream, Answer::Change(change)).await {
            return;
        }
    }
}

struct Watch {
    pool: Pool,
    bounds: Arc<Bounds>,
    path: Path,
    recursive: bool,
    queue: Queue,
    held: Option<Held>,
    /// What the directory was when it began.
    identity: Option<tree::Identity>,
}

/// The kernel's side and ours. Let go on another thread: the kernel takes its time.
struct Held {
    pool: Pool,
    events: Option<Arc<AsyncFd<OwnedFd>>>,
    tree: Option<Tree>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let both = (self.tree.take(), self.events.take());
        self.pool.later(move || drop(both));
    }
}

impl Watch {
    /// Watches the directory and, if asked to, all below it.
    async fn begin(&mut self) -> Result<(), Failure> {
        self.held = None;
        let failed = |cause: Errno| of_file(self.path.asked(), &cause.into());
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let inotify = inotify::init(flags).map_err(failed)?;
        let events = sys::watch(inotify).map_err(|cause| of_file(self.path.asked(), &cause))?;
        let events = Arc::new(events);
        let directories = Arc::clone(&self.bounds.directories);
        let (path, queue) = (self.path.clone(), self.queue.clone());
        let (recursive, shared) = (self.recursive, Arc::clone(&events));
        let make = move || Tree::new(shared, &path, recursive, queue, directories);
        let tree = self.pool.run(make).await?.map_err(failed)?;
        let identity = tree.identity();
        if self.identity.is_some() && self.identity != identity {
            return Err(failed(Errno::NOENT));
        }
        self.identity = identity;
        self.held = Some(Held { pool: self.pool.clone(), events: Some(events), tree: Some(tree) });
        loop {
            match self.step().await? {
                State::Beginning => {}
                State::Gone => return Err(of_file(self.path.asked(), &Errno::NOENT.into())),
                _ => return Ok(()),
            }
        }
    }

    /// Follows what happens until the directory is gone.
    async fn follow(&mut self) -> Result<(), Failure> {
        let mut pause = PAUSE.0;
        loop {
            match self.step().await? {
                State::Beginning | State::Behind => {}
                State::Quiet => self.quiet().await,
                State::Gone => return Ok(()),
                State::Lost => {
                    self.held = None;
                    self.queue.shut();
                    sleep(pause).await;
                    let begun = Instant::now();
                    let again = self.begin().await;
                    pause = (begun.elapsed() * 3).clamp(PAUSE.0, PAUSE.1);
                    self.queue.overflow();
                    if again.is_err() {
                        // It cannot be watched any more, which is as good as gone.
                        self.queue.push(gone(&self.path));
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes what the kernel has to say, and does a piece of the work that comes of it.
    async fn step(&mut self) -> Result<State, Failure> {
        let Some(held) = &mut self.held else { return Ok(State::Gone) };
        let (Some(events), Some(mut tree)) = (&held.events, held.tree.take()) else {
            return Ok(State::Gone);
        };
        let batch = match Batch::read(events.get_ref()) {
            Ok(batch) => batch,
            Err(cause) => return Err(of_file(self.path.asked(), &cause.into())),
        };
        let full = batch.full;
        tree.digest(batch);
        let (tree, state) = if tree.has_work() {
            let work = move || {
                tree.work();
                let state = tree.state(true);
                (tree, state)
            };
            self.pool.run(work).await?
        } else {
            let state = tree.state(full);
            (tree, state)
        };
        if let Some(held) = &mut self.held {
            held.tree = Some(tree);
        }
        if full {
            sleep(BREATH).await;
        }
        Ok(state)
    }

    /// Waits until something happens. A move whose other half does not come was one to or from
    /// elsewhere.
    async fn quiet(&mut self) {
        let Some(Held { events: Some(events), tree: Some(tree), .. }) = &mut self.held else {
            return;
        };
        let readable = async {
            if let Ok(mut ready) = events.readable().await {
                ready.clear_ready();
            }
        };
        if tree.waits_for_half() {
            if timeout(HALF, readable).await.is_err() {
                tree.give_up_half();
            }
        } else {
            readable.await;
        }
    }
}

fn gone(path: &Path) -> Change {
    Change {
        kind: ChangeKind::Removed.into(),
        path: path.as_str().into(),
        from: Vec::new(),
        directory: true,
    }
}
