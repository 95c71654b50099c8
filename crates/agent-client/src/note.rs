//! What the host writes on a process when it starts it, and gets back with it: how things stood.
//!
//! The agent keeps it, so that a daemon started anew judges a process as the one before it would
//! have.

use std::time::Duration;

use prost::Message as _;
use rustix::time::{ClockId, clock_gettime};

use crate::Counters;

/// No note is longer; what is, was not written here.
const LONGEST: usize = 256;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Note {
    /// Microseconds of the clock that counts from the machine's start; that one outlives a daemon
    /// and nobody sets it.
    #[prost(uint64, optional, tag = "1")]
    started_us: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    timeout_us: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    cpu_limit_us: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    cpu_time_us: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) oom_kills: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    pub(crate) pids_refused: Option<u64>,
    #[prost(uint64, optional, tag = "7")]
    memory: Option<u64>,
    #[prost(uint64, optional, tag = "8")]
    peak_memory: Option<u64>,
    /// Only the last of its output is kept.
    #[prost(bool, optional, tag = "9")]
    terminal: Option<bool>,
}

impl Note {
    pub(crate) fn new(
        counters: &Counters,
        timeout: Option<Duration>,
        cpu_limit: Option<Duration>,
    ) -> Self {
        Self {
            started_us: Some(micros(uptime())),
            timeout_us: timeout.map(micros),
            cpu_limit_us: cpu_limit.map(micros),
            cpu_time_us: counters.cpu_time.map(micros),
            oom_kills: counters.oom_kills,
            pids_refused: counters.pids_refused,
            memory: counters.memory,
            peak_memory: counters.peak_memory,
            terminal: None,
        }
    }

    /// The same, of a process with a terminal, or without.
    pub(crate) fn with_terminal(self, terminal: bool) -> Self {
        Self { terminal: terminal.then_some(true), ..self }
    }

    pub(crate) fn has_terminal(&self) -> bool {
        self.terminal == Some(true)
    }

    /// The note in these bytes; an empty one if there is none.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        if bytes.len() > LONGEST {
            return Self::default();
        }
        Self::decode(bytes).unwrap_or_default()
    }

    /// Time since the start; none if it is not known.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        self.started_us.map(|started| uptime().saturating_sub(Duration::from_micros(started)))
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout_us.map(Duration::from_micros)
    }

    pub(crate) fn cpu_limit(&self) -> Option<Duration> {
        self.cpu_limit_us.map(Duration::from_micros)
    }

    /// Processor time since the start; zero if it cannot be told.
    pub(crate) fn cpu_time(&self, now: &Counters) -> Duration {
        match (self.cpu_time_us, now.cpu_time) {
            (Some(before), Some(now)) => now.saturating_sub(Duration::from_micros(before)),
            _ => Duration::ZERO,
        }
    }

    /// The most memory that was seen in use since the start. The kernel's high-water mark is that
    /// of the sandbox's whole life: it tells of this time only if it rose.
    pub(crate) fn most_memory(&self, now: &Counters) -> Option<u64> {
        match (self.peak_memory, now.peak_memory) {
            (Some(before), Some(peak)) if peak > before => Some(peak),
            _ => self.memory.max(now.memory),
        }
    }
}

fn uptime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_comes_back_as_it_was_written() {
        let counters = Counters {
            cpu_time: Some(Duration::from_millis(1500)),
            oom_kills: Some(2),
            pids_refused: Some(3),
            ..Counters::default()
        };
        let note = Note::new(&counters, Some(Duration::from_secs(9)), None);

        let read = Note::read(&note.encode_to_vec());

        assert_eq!(read, note);
        assert_eq!(read.timeout(), Some(Duration::from_secs(9)));
        let later = Counters { cpu_time: Some(Duration::from_secs(4)), ..counters };
        assert_eq!(read.cpu_time(&later), Duration::from_millis(2500));
        assert!(read.elapsed().unwrap() < Duration::from_hours(1));
    }

    #[test]
    fn what_is_no_note_is_an_empty_one() {
        assert_eq!(Note::read(&[0xff; 20]), Note::default());
        assert_eq!(Note::read(&[0; LONGEST + 1]), Note::default());
        assert_eq!(Note::default().elapsed(), None);
    }

    #[test]
    fn counters_that_went_backwards_count_nothing() {
        let high = Counters { cpu_time: Some(Duration::from_secs(5)), ..Counters::default() };
        let low = Counters { cpu_time: Some(Duration::from_secs(1)), ..Counters::default() };

        assert_eq!(Note::new(&high, None, None).cpu_time(&low), Duration::ZERO);
    }

    #[test]
    fn an_old_high_water_mark_is_not_told_as_a_new_one() {
        let counters = |memory, peak| Counters {
            memory: Some(memory),
            peak_memory: Some(peak),
            ..Counters::default()
        };
        let note = Note::new(&counters(10, 500), None, None);

        assert_eq!(note.most_memory(&counters(20, 600)), Some(600));
        assert_eq!(note.most_memory(&counters(20, 500)), Some(20));
        assert_eq!(note.most_memory(&counters(5, 500)), Some(10));
        assert_eq!(note.most_memory(&Counters::default()), Some(10));
        assert_eq!(Note::default().most_memory(&Counters::default()), None);
    }
}
