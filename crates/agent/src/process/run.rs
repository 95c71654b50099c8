//! One process from its start to the end of its last descendant.

use std::{collections::VecDeque, io, os::fd::AsFd, sync::Arc, time::Duration};

use atoll_agent_protocol::message::{Cause, Ended};
use rustix::io::{Errno, ioctl_fionread, read};
use tokio::{
    io::Interest,
    sync::{Notify, mpsc, oneshot},
    task::AbortHandle,
    time::{Instant, sleep, sleep_until},
};

use super::{start::Starter, table::Ask};
use crate::{
    launch::{Keeper, Launched, Order, Report, Source},
    sys,
};

/// What is read at once.
const CHUNK: usize = 16 << 10;
/// Between readings of output that nobody will see, so that it costs little.
const INDIFFERENCE: Duration = Duration::from_millis(2);

/// What may lie unread in a terminal when its process ends; the kernel keeps less.
const LAST_WORDS: usize = 256 << 10;

/// How often processes are found to have outlived their killing before the sandbox ends for it.
/// The keeper tries for seconds each time.
const SURVIVALS: u32 = 3;

/// What ends a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    pub(crate) begun: Instant,
    pub(crate) deadline: Option<Instant>,
    /// Bytes of each stream.
    pub(crate) limit: u64,
}

pub(crate) struct Run {
    starter: Arc<Starter>,
    id: u64,
    keeper: Keeper,
    /// None once closed.
    outputs: [Option<Source>; 2],
    /// With a terminal: told when one of its readers has moved.
    moved: Option<Arc<Notify>>,
    until: Until,
    asked: mpsc::Receiver<Ask>,
    feeder: Option<AbortHandle>,
    /// Why it is being killed, if it is.
    cause: Option<Cause>,
    /// A stream was longer than its limit.
    truncated: bool,
    ended: bool,
    /// How often a killing left something alive.
    survivals: u32,
    kills: Vec<oneshot::Sender<bool>>,
    signals: VecDeque<oneshot::Sender<bool>>,
}

impl Run {
    pub(crate) fn new(
        starter: Arc<Starter>,
        id: u64,
        launched: Launched,
        until: Until,
        asked: mpsc::Receiver<Ask>,
        feeder: Option<AbortHandle>,
    ) -> Self {
        let moved = starter.table.moved(id);
        Self {
            starter,
            id,
            keeper: launched.keeper,
            outputs: [Some(launched.stdout), launched.stderr],
            moved,
            until,
            asked,
            feeder,
            cause: None,
            truncated: false,
            ended: false,
            survivals: 0,
            kills: Vec::new(),
            signals: VecDeque::new(),
        }
    }

    /// Runs until nothing is left of the process.
    pub(crate) async fn drive(mut self) {
        let keeper = self.keeper.clone();
        loop {
            let [stdout, stderr] = &self.outputs;
            let held = self.held();
            tokio::select! {
                report = keeper.report() => {
                    if self.hear(report).await {
                        break;
                    }
                }
                Some(ask) = self.asked.recv() => self.obey(ask).await,
                () = readable(stdout.as_ref()), if held.is_none() => self.pump(0).await,
                () = readable(stderr.as_ref()) => self.pump(1).await,
                () = told(self.moved.as_deref()), if held.is_some() => {}
                () = reached(held), if held.is_some() => {}
                () = reached(self.until.deadline), if self.cause.is_none() && !self.ended => {
                    self.kill(Cause::Timeout).await;
                }
            }
        }
        self.starter.table.leave(self.id);
    }

    /// Until when the output waits for its readers, unless one of them moves.
    fn held(&self) -> Option<Instant> {
        self.moved.as_ref().filter(|_| !self.ended)?;
        self.starter.table.hold(self.id).map(Instant::from_std)
    }

    /// Takes in what the keeper says; true if that was its last word.
    async fn hear(&mut self, report: Option<Report>) -> bool {
        match report {
            Some(Report::Exited { status, killing }) => self.finish(Some(status), killing),
            Some(Report::Killed(done)) => {
                for waiting in self.kills.drain(..) {
                    let _ = waiting.send(done);
                }
                if !done {
                    self.survivals += 1;
                    if self.survivals >= SURVIVALS {
                        // With this program goes the sandbox, and with that all that is in it.
                        sys::exit(1);
                    }
                    self.keeper.order(Order::Kill).await;
                }
            }
            Some(Report::Signalled(done)) => {
                if let Some(waiting) = self.signals.pop_front() {
                    let _ = waiting.send(done);
                }
            }
            Some(Report::Gone) => {
                for waiting in self.kills.drain(..) {
                    let _ = waiting.send(true);
                }
                return true;
            }
            None => {
                self.finish(None, false);
                return true;
            }
        }
        false
    }

    async fn obey(&mut self, ask: Ask) {
        match ask {
            Ask::Kill(cause, done) => {
                self.kills.push(done);
                self.kill(cause).await;
            }
            Ask::Signal(signal, done) => {
                self.signals.push_back(done);
                self.keeper.order(Order::Signal(signal)).await;
            }
        }
    }

    async fn kill(&mut self, cause: Cause) {
        self.cause.get_or_insert(cause);
        self.keeper.order(Order::Kill).await;
    }

    /// Reads one piece of output.
    async fn pump(&mut self, stream: usize) {
        let Some(pipe) = &self.outputs[stream] else { return };
        let result = pipe.try_io(Interest::READABLE, |pipe| {
            let mut buffer = [0; CHUNK];
            let count = read(pipe, &mut buffer)?;
            Ok((count, self.keep(stream, &buffer[..count])))
        });
        match result {
            Ok((0, _)) => self.outputs[stream] = None,
            Ok((_, true)) => {}
            Ok((_, false)) if self.ended => sleep(INDIFFERENCE).await,
            Ok((_, false)) => {
                let begun = std::mem::replace(&mut self.truncated, true);
                if !begun {
                    self.kill(Cause::OutputLimit).await;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.outputs[stream] = None,
        }
    }

    /// Keeps output if there is room for it all.
    fn keep(&self, stream: usize, data: &[u8]) -> bool {
        let limit = self.until.limit;
        !self.ended && !self.truncated && self.starter.table.append(self.id, stream, data, limit)
    }

    /// The process itself has ended. What it wrote is in the pipes by now; what comes later is of
    /// others, and need not be waited for.
    fn finish(&mut self, status: Option<i32>, killing: bool) {
        if self.ended {
            return;
        }
        if self.moved.is_some() {
            self.drain_terminal();
            self.truncated = self.starter.table.dropped(self.id) > 0;
            // With this, what it leaves behind loses its terminal.
            self.outputs = [None, None];
        }
        for stream in [0, 1] {
            if !self.truncated && !self.drain(stream) {
                self.truncated = true;
                let keeper = self.keeper.clone();
                tokio::spawn(async move { keeper.order(Order::Kill).await });
            }
        }
        self.ended = true;
        if let Some(feeder) = self.feeder.take() {
            feeder.abort();
        }
        let cause = match (status, self.cause) {
            (None, _) => Cause::Fault,
            _ if self.truncated && self.moved.is_none() => Cause::OutputLimit,
            (_, Some(cause)) if killing => cause,
            _ => Cause::Itself,
        };
        let duration = self.until.begun.elapsed().as_micros();
        let ended = Ended {
            exit_code: status.filter(|status| libc::WIFEXITED(*status)).map(exit_code),
            signal: status.filter(|status| libc::WIFSIGNALED(*status)).map(signal),
            cause: cause.into(),
            duration_us: u64::try_from(duration).unwrap_or(u64::MAX),
            truncated: self.truncated,
        };
        self.starter.table.end(self.id, ended);
    }

    /// Reads what is in a terminal at this moment. What is on its way there counts, which the kernel
    /// does not tell the length of; others may write on.
    fn drain_terminal(&self) {
        let Some(terminal) = &self.outputs[0] else { return };
        let mut buffer = [0; CHUNK];
        let mut rest = LAST_WORDS;
        while rest > 0 {
            match read(terminal.as_fd(), &mut buffer) {
                Ok(count) if count > 0 => {
                    self.keep(0, &buffer[..count]);
                    rest = rest.saturating_sub(count);
                }
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Reads what is in a pipe at this moment, and no more; false if there was no room for it.
    fn drain(&self, stream: usize) -> bool {
        let Some(pipe) = &self.outputs[stream] else { return true };
        let Ok(mut rest) = ioctl_fionread(pipe) else { return true };
        let mut buffer = [0; CHUNK];
        while rest > 0 {
            let most = usize::try_from(rest).unwrap_or(CHUNK).min(CHUNK);
            match read(pipe.as_fd(), &mut buffer[..most]) {
                Ok(0) => break,
                Ok(count) if !self.keep(stream, &buffer[..count]) => return false,
                Ok(count) => rest -= count as u64,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        true
    }
}

fn exit_code(status: i32) -> i32 {
    libc::WEXITSTATUS(status)
}

fn signal(status: i32) -> i32 {
    libc::WTERMSIG(status)
}

async fn told(notify: Option<&Notify>) {
    match notify {
        Some(notify) => notify.notified().await,
        None => std::future::pending().await,
    }
}

async fn readable(pipe: Option<&Source>) {
    match pipe {
        Some(pipe) if pipe.readable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
