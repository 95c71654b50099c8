//! Keeps a terminal's output from running away from whoever reads it.
//!
//! Of a terminal only the last bytes are kept, so a process that writes faster than anyone reads
//! would leave gaps. As a terminal of flesh and glass does, this one takes no more than its fastest
//! reader can follow; readers that have stopped, and terminals nobody reads, hold up nothing.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// How far output may be ahead of its fastest reader. Well below what is kept.
const AHEAD: u64 = 128 << 10;
/// How long a reader may read nothing before it is waited for no more.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: u64,
    readers: BTreeMap<u64, Reader>,
    /// A reader has read on, or gone.
    pub(crate) moved: Arc<Notify>,
}

#[derive(Debug)]
struct Reader {
    at: u64,
    /// When it last read, or had nothing left to read.
    since: Instant,
}

impl Pace {
    /// Counts a reader in. One beyond the `end` of what was written waits for something else.
    pub(crate) fn join(&mut self, at: u64, end: u64) -> Option<u64> {
        if at > end {
            return None;
        }
        self.last += 1;
        self.readers.insert(self.last, Reader { at, since: Instant::now() });
        Some(self.last)
    }

    pub(crate) fn advance(&mut self, reader: u64, at: u64) {
        if let Some(reader) = self.readers.get_mut(&reader) {
            *reader = Reader { at, since: Instant::now() };
            self.moved.notify_one();
        }
    }

    pub(crate) fn leave(&mut self, reader: u64) {
        self.readers.remove(&reader);
        self.moved.notify_one();
    }

    /// Output is about to go beyond `end`: for those who had read it all, time begins now.
    pub(crate) fn grow(&mut self, end: u64) {
        let now = Instant::now();
        for reader in self.readers.values_mut().filter(|reader| reader.at >= end) {
            reader.since = now;
        }
    }

    /// Until when output that has come to `end` is not to go on, unless a reader moves.
    pub(crate) fn hold(&self, end: u64) -> Option<Instant> {
        let now = Instant::now();
        let waited_for = self.readers.values().filter(|reader| now < reader.since + PATIENCE);
        let lead = waited_for.max_by_key(|reader| reader.at)?;
        (end.saturating_sub(lead.at) >= AHEAD).then_some(lead.since + PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fastest_reader_is_waited_for() {
        let mut pace = Pace::default();
        assert_eq!(pace.hold(10 * AHEAD), None, "nobody reads");

        let slow = pace.join(0, 0).unwrap();
        assert!(pace.hold(AHEAD - 1).is_none());
        assert!(pace.hold(AHEAD).is_some());
        let fast = pace.join(0, 0).unwrap();
        pace.advance(fast, AHEAD);
        assert!(pace.hold(AHEAD).is_none());
        pace.leave(fast);
        assert!(pace.hold(AHEAD).is_some());
        pace.leave(slow);
        assert!(pace.hold(AHEAD).is_none());
    }

    #[test]
    fn whoever_waits_for_the_end_only_is_no_reader() {
        let mut pace = Pace::default();

        assert_eq!(pace.join(u64::MAX, 5), None);
        assert_eq!(pace.hold(10 * AHEAD), None);
    }

    #[test]
    fn a_reader_that_stopped_is_not_waited_for_and_one_that_slept_is() {
        let mut pace = Pace::default();
        let reader = pace.join(0, 0).unwrap();
        let long_ago = Instant::now().checked_sub(2 * PATIENCE).unwrap();
        pace.readers.get_mut(&reader).unwrap().since = long_ago;
        assert!(pace.hold(AHEAD).is_none());

        pace.grow(0);
        assert!(pace.hold(AHEAD).is_some(), "it had read all there was");
    }
}
