//! All processes, running and ended, within bounds.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use atoll_agent_protocol::message::{Cause, Ended, Failure, Output, Process, SCROLLBACK};
use bytes::Bytes;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::{input::Input, log::Log, pace::Pace};
use crate::{
    failure::{exhausted, not_found},
    launch::{Size, Terminal},
};

/// Output kept, of all processes together.
const BUDGET: u64 = 96 << 20;
/// Ended processes that are remembered.
const ENDED: usize = 1000;
/// Processes that run, or have left something running.
const LIVE: usize = 1000;

/// What may be asked of a running process.
#[derive(Debug)]
pub(crate) enum Ask {
    /// End it with its descendants; tells whether that was possible.
    Kill(Cause, oneshot::Sender<bool>),
    /// Tells whether it was still there.
    Signal(i32, oneshot::Sender<bool>),
}

/// What a reader of output gets.
#[derive(Debug)]
pub(crate) enum Read {
    Output(Output),
    Ended(Ended),
    /// Nothing yet.
    Wait,
}

#[derive(Debug, Default)]
pub(crate) struct Table(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    entries: BTreeMap<u64, Entry>,
    /// Those that have ended, in that order.
    ended: VecDeque<u64>,
    /// Bytes of output in all entries.
    kept: u64,
    live: usize,
}

#[derive(Debug)]
struct Entry {
    argv: Vec<String>,
    note: Vec<u8>,
    started_us: u64,
    logs: [Log; 2],
    /// The logs are gone.
    forgotten: bool,
    ended: Option<Ended>,
    /// Something of it is still running.
    live: bool,
    changed: watch::Sender<()>,
    asks: mpsc::Sender<Ask>,
    input: Option<mpsc::Sender<Input>>,
    screen: Option<Screen>,
}

/// What a process with a terminal has besides.
#[derive(Debug)]
pub(crate) struct Screen {
    size: Size,
    /// None once the process has ended.
    terminal: Option<Arc<Terminal>>,
    pace: Pace,
}

impl Screen {
    pub(crate) fn new(size: Size, terminal: Arc<Terminal>) -> Self {
        Self { size, terminal: Some(terminal), pace: Pace::default() }
    }
}

/// One who reads a terminal's output, counted as such until this is dropped; of any other process
/// it is nothing.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    table: &'a Table,
    process: u64,
    reader: Option<u64>,
}

impl Follower<'_> {
    /// It has read up to here.
    pub(crate) fn advance(&self, at: u64) {
        self.tell(|pace, reader| pace.advance(reader, at));
    }

    fn tell(&self, action: impl FnOnce(&mut Pace, u64)) {
        let Some(reader) = self.reader else { return };
        let _ = self.table.with(self.process, |entry| {
            if let Some(screen) = &mut entry.screen {
                action(&mut screen.pace, reader);
            }
        });
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.tell(Pace::leave);
    }
}

/// The right to have one more process.
#[derive(Debug)]
pub(crate) struct Place<'a>(Option<&'a Table>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(table) = self.0 {
            table.lock().live -= 1;
        }
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more process, or the reason there is none.
    pub(crate) fn place(&self) -> Result<Place<'_>, Failure> {
        let mut inner = self.lock();
        if inner.live >= LIVE {
            return Err(exhausted(format!("{LIVE} processes are running")));
        }
        inner.live += 1;
        Ok(Place(Some(self)))
    }

    /// Enters a process that runs now.
    pub(crate) fn enter(
        &self,
        mut place: Place<'_>,
        (argv, note): (Vec<String>, Vec<u8>),
        asks: mpsc::Sender<Ask>,
        input: Option<mpsc::Sender<Input>>,
        screen: Option<Screen>,
    ) -> u64 {
        place.0 = None;
        let mut inner = self.lock();
        inner.last += 1;
        let id = inner.last;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let entry = Entry {
            argv,
            note,
            started_us: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
            logs: Default::default(),
            forgotten: false,
            ended: None,
            live: true,
            changed: watch::Sender::new(()),
            asks,
            input,
            screen,
        };
        inner.entries.insert(id, entry);
        id
    }

    /// Adds output and says whether there was room for it all.
    pub(crate) fn append(&self, id: u64, stream: usize, data: &[u8], limit: u64) -> bool {
        let mut inner = self.lock();
        let wanted = data.len() as u64;
        inner.make_room(wanted);
        let total = BUDGET.saturating_sub(inner.kept);
        let Some(entry) = inner.entries.get_mut(&id) else { return true };
        let log = &mut entry.logs[stream];
        if let Some(screen) = &mut entry.screen {
            screen.pace.grow(log.len());
            let most = SCROLLBACK.min(total.saturating_add(log.kept()));
            log.append(data);
            let dropped = log.trim(most);
            entry.changed.send_replace(());
            inner.kept = inner.kept + wanted - dropped;
            return true;
        }
        let room = limit.saturating_sub(log.len()).min(total);
        let kept = wanted.min(room);
        log.append(&data[..usize::try_from(kept).unwrap_or(0)]);
        entry.changed.send_replace(());
        inner.kept += kept;
        kept == wanted
    }

    /// Notes how a process ended. Nothing is read from or written to it after that.
    pub(crate) fn end(&self, id: u64, ended: Ended) {
        let mut inner = self.lock();
        if let Some(entry) = inner.entries.get_mut(&id) {
            entry.ended = Some(ended);
            entry.input = None;
            if let Some(screen) = &mut entry.screen {
                screen.terminal = None;
            }
            entry.logs.iter_mut().for_each(Log::seal);
            entry.changed.send_replace(());
            inner.ended.push_back(id);
        }
        inner.forget_oldest();
    }

    /// Notes that a process and all its descendants are gone.
    pub(crate) fn leave(&self, id: u64) {
        let mut inner = self.lock();
        inner.live -= 1;
        if let Some(entry) = inner.entries.get_mut(&id) {
            entry.live = false;
        }
        inner.forget_oldest();
    }

    /// Told whenever [`read`](Self::read) may have more.
    pub(crate) fn watch(&self, id: u64) -> Result<watch::Receiver<()>, Failure> {
        self.with(id, |entry| entry.changed.subscribe())
    }

    /// Output of `stream` (0 or 1) from `offset`, else of the other, else the end.
    pub(crate) fn read(&self, id: u64, offsets: [u64; 2], first: usize) -> Result<Read, Failure> {
        self.with(id, |entry| {
            if entry.forgotten {
                return Err(not_found(format!("the output of process {id} is no longer kept")));
            }
            for stream in [first, 1 - first] {
                let (offset, data) = entry.logs[stream].after(offsets[stream]);
                if !data.is_empty() {
                    return Ok(Read::Output(Output {
                        stream: if stream == 0 { 1 } else { 2 },
                        offset,
                        data: Bytes::copy_from_slice(data),
                    }));
                }
            }
            Ok(entry.ended.map_or(Read::Wait, Read::Ended))
        })?
    }

    /// Where to ask a process for something; none if nothing is left of it.
    pub(crate) fn asks(&self, id: u64) -> Result<Option<mpsc::Sender<Ask>>, Failure> {
        self.with(id, |entry| entry.live.then(|| entry.asks.clone()))
    }

    /// Where to write a process's input; none if that is closed.
    pub(crate) fn input(&self, id: u64) -> Result<Option<mpsc::Sender<Input>>, Failure> {
        self.with(id, |entry| entry.input.clone())
    }

    /// Closes a process's input once it has taken what it was sent.
    pub(crate) fn close_input(&self, id: u64) -> Result<(), Failure> {
        self.with(id, |entry| drop(entry.input.take()))
    }

    /// The terminal of a process that runs; none if it has none.
    pub(crate) fn terminal(&self, id: u64) -> Result<Option<Arc<Terminal>>, Failure> {
        let terminal = |entry: &mut Entry| entry.screen.as_ref()?.terminal.clone();
        self.with(id, terminal)
    }

    /// Whether a process has a terminal, or had one.
    pub(crate) fn has_screen(&self, id: u64) -> Result<bool, Failure> {
        self.with(id, |entry| entry.screen.is_some())
    }

    /// Sets a terminal's size; false if there is none, or none any more.
    pub(crate) fn resize(&self, id: u64, size: Size) -> Result<bool, Failure> {
        self.with(id, |entry| {
            let Some(screen) = &mut entry.screen else { return false };
            let Some(terminal) = &screen.terminal else { return false };
            let done = terminal.resize(size).is_ok();
            if done {
                screen.size = size;
            }
            done
        })
    }

    /// Counts in one who reads from `at` on.
    pub(crate) fn follow(&self, id: u64, at: u64) -> Result<Follower<'_>, Failure> {
        let reader = self.with(id, |entry| {
            let end = entry.logs[0].len();
            entry.screen.as_mut().and_then(|screen| screen.pace.join(at, end))
        })?;
        Ok(Follower { table: self, process: id, reader })
    }

    /// Until when a terminal's output is not to be read, unless [`moved`](Self::moved) tells.
    pub(crate) fn hold(&self, id: u64) -> Option<Instant> {
        let hold = |entry: &mut Entry| entry.screen.as_ref()?.pace.hold(entry.logs[0].len());
        self.with(id, hold).ok().flatten()
    }

    /// Told when a reader of a terminal has moved.
    pub(crate) fn moved(&self, id: u64) -> Option<Arc<Notify>> {
        let moved = |entry: &mut Entry| Some(Arc::clone(&entry.screen.as_ref()?.pace.moved));
        self.with(id, moved).ok().flatten()
    }

    /// Bytes of a process's output that are no longer kept.
    pub(crate) fn dropped(&self, id: u64) -> u64 {
        self.with(id, |entry| entry.logs[0].len() - entry.logs[0].kept()).unwrap_or(0)
    }

    /// The first process after `id`.
    pub(crate) fn next(&self, id: u64) -> Option<Process> {
        let inner = self.lock();
        let (process, entry) = inner.entries.range(id.checked_add(1)?..).next()?;
        Some(Process {
            process: *process,
            argv: entry.argv.clone(),
            started_us: entry.started_us,
            ended: entry.ended,
            note: entry.note.clone(),
            terminal: entry.screen.as_ref().map(|screen| screen.size.to_message()),
            stdout: entry.logs[0].len(),
            stderr: entry.logs[1].len(),
        })
    }

    fn with<T>(&self, id: u64, action: impl FnOnce(&mut Entry) -> T) -> Result<T, Failure> {
        let mut inner = self.lock();
        let entry = inner.entries.get_mut(&id);
        entry.map(action).ok_or_else(|| not_found(format!("there is no process {id}")))
    }
}

impl Inner {
    /// Drops the output of processes that ended longest ago until so much fits.
    fn make_room(&mut self, wanted: u64) {
        for id in &self.ended {
            if self.kept + wanted <= BUDGET {
                return;
            }
            if let Some(entry) = self.entries.get_mut(id) {
                self.kept -= entry.forget();
            }
        }
    }

    /// Forgets those that ended longest ago and left nothing running.
    fn forget_oldest(&mut self) {
        let mut excess = self.ended.len().saturating_sub(ENDED);
        if excess == 0 {
            return;
        }
        let (entries, kept) = (&mut self.entries, &mut self.kept);
        self.ended.retain(|id| {
            let goes = excess > 0 && entries.get(id).is_none_or(|entry| !entry.live);
            if goes {
                excess -= 1;
                *kept -= entries.remove(id).map_or(0, |mut entry| entry.forget());
            }
            !goes
        });
    }
}

impl Entry {
    fn forget(&mut self) -> u64 {
        let kept = self.logs.iter().map(Log::kept).sum();
        if kept > 0 {
            self.forgotten = true;
            self.logs.iter_mut().for_each(Log::clear);
            self.changed.send_replace(());
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(table: &Table) -> u64 {
        let (asks, _) = mpsc::channel(1);
        table.enter(table.place().unwrap(), Default::default(), asks, None, None)
    }

    fn end(table: &Table, id: u64) {
        table.end(id, Ended::default());
        table.leave(id);
    }

    #[test]
    fn those_that_ended_longest_ago_are_forgotten_and_those_that_run_are_not() {
        let table = Table::default();
        let running = enter(&table);
        let background = enter(&table);
        table.end(background, Ended::default());
        let first = enter(&table);
        end(&table, first);
        for _ in 0..ENDED {
            let id = enter(&table);
            end(&table, id);
        }

        assert!(table.watch(running).is_ok());
        assert!(table.watch(background).is_ok(), "something of it runs still");
        assert!(table.watch(first).is_err());
        assert_eq!(table.lock().ended.len(), ENDED);
    }

    #[test]
    fn there_is_an_end_to_what_may_run() {
        let table = Table::default();
        let ids: Vec<_> = (0..LIVE).map(|_| enter(&table)).collect();

        assert!(table.place().is_err());
        end(&table, ids[0]);
        let place = table.place().unwrap();
        assert!(table.place().is_err());
        drop(place);
        assert!(table.place().is_ok());
    }

    #[test]
    fn a_limit_is_met_exactly() {
        let table = Table::default();
        let id = enter(&table);

        assert!(table.append(id, 0, b"12345", 10));
        assert!(table.append(id, 1, b"1234567890", 10), "each stream has its own");
        assert!(table.append(id, 0, b"67890", 10));
        assert!(!table.append(id, 0, b"x", 10));
        assert_eq!(table.lock().kept, 20);
    }

    #[test]
    fn nothing_is_counted_once_it_is_forgotten() {
        let table = Table::default();
        for _ in 0..ENDED + 10 {
            let id = enter(&table);
            table.append(id, 0, &[0; 100], 1000);
            end(&table, id);
        }

        assert_eq!(table.lock().kept, 100 * ENDED as u64);
        assert_eq!(table.lock().live, 0);
    }
}
