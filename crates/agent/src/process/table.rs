//! All processes, running and ended, within bounds.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use atoll_agent_protocol::message::{Cause, Ended, Failure, Output, Process};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};

use super::{input::Input, log::Log};
use crate::failure::{exhausted, not_found};

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
                let data = entry.logs[stream].after(offsets[stream]);
                if !data.is_empty() {
                    return Ok(Read::Output(Output {
                        stream: if stream == 0 { 1 } else { 2 },
                        offset: offsets[stream],
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
        let kept = self.logs.iter().map(Log::len).sum();
        if kept > 0 {
            self.forgotten = true;
            self.logs = Default::default();
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
        table.enter(table.place().unwrap(), Default::default(), asks, None)
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
