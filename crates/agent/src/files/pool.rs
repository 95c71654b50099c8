//! Threads that touch files as the sandbox's user.
//!
//! Only what they do to files is the user's: they keep the agent's other ids, so that the user can
//! neither signal nor trace them. Work is cut into small pieces, so a large file or a slow host
//! never keeps a thread, and a few are enough.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use atoll_agent_protocol::message::{Failure, User};
use rustix::{
    process::{DumpableBehavior, set_dumpable_behavior},
    thread::set_thread_groups,
};
use tokio::sync::{Semaphore, oneshot};

use crate::{
    failure::internal,
    launch::{Guests, drop_capabilities},
    sys,
};

const THREADS: usize = 4;
/// Pieces of work that wait for a thread.
const WAITING: usize = 64;
const STACK: usize = 256 << 10;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Debug, Clone)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
}

struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    guests: Guests,
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

impl Pool {
    /// No thread is started before there is something to do.
    pub(crate) fn new(guests: Guests) -> Self {
        let shared = Shared { queue: Mutex::default(), ready: Condvar::new(), guests };
        Self { shared: Arc::new(shared), places: Arc::new(Semaphore::new(WAITING)) }
    }

    /// Does a piece of work. Dropping the future does not stop it; its result is then dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let given_up = || internal("the work on files was given up");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| given_up())?;
        let (done, when_done) = oneshot::channel();
        self.later(move || {
            let result = work();
            drop(place);
            let _ = done.send(result);
        });
        when_done.await.map_err(|_| given_up())
    }

    /// Does a piece of work that nobody waits for.
    pub(crate) fn later(&self, work: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.lock();
        queue.work.push_back(Box::new(work));
        if queue.idle < queue.work.len() && queue.threads < THREADS {
            let shared = Arc::clone(&self.shared);
            let builder = thread::Builder::new().name("files".to_owned()).stack_size(STACK);
            match builder.spawn(move || shared.serve()) {
                Ok(_) => queue.threads += 1,
                // Without any thread nobody would ever answer.
                Err(_) if queue.threads == 0 => queue.work.clear(),
                Err(_) => {}
            }
        }
        drop(queue);
        self.shared.ready.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let trusted = become_guest(&self.guests).is_ok();
        let mut queue = self.lock();
        loop {
            if let Some(work) = queue.work.pop_front() {
                drop(queue);
                // What cannot be done with the guest's rights is not done with ours.
                if trusted {
                    work();
                }
                queue = self.lock();
            } else {
                queue.idle += 1;
                queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
        }
    }
}

/// Leaves this thread with a guest's rights to files, and no other.
fn become_guest(guests: &Guests) -> io::Result<()> {
    if let Some(User { uid, gid }) = guests.user {
        set_thread_groups(&[])?;
        sys::set_file_system_user(uid, gid)?;
    }
    drop_capabilities()?;
    guests.confine()?;
    // The kernel forgets this with every change of user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
