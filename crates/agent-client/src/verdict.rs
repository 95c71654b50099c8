//! How a process ended, judged by what the host saw itself wherever it can see.
//!
//! The agent's word is taken for what only it knows (an exit code, whose signal it was) and only
//! where it does not contradict the host: a timeout that is not over is none, and memory ran out
//! only if the kernel says so.

use std::time::Duration;

use atoll_agent_protocol::message::{Cause, Ended};
use atoll_engine::{LimitHit, Outcome, Reason};

use crate::{Counters, note::Note};

/// Why this host wanted a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Someone asked for it.
    Cancel,
    /// It used more processor time than it may.
    CpuTime,
    /// Its time was over and the agent did not end it.
    Timeout,
}

/// What the host knows when a process has ended.
#[derive(Debug, Clone)]
pub(crate) struct Evidence<'a> {
    pub(crate) before: &'a Note,
    pub(crate) now: Counters,
    pub(crate) elapsed: Option<Duration>,
    pub(crate) asked: Option<Asked>,
    pub(crate) disk_full: bool,
}

const SIGKILL: i32 = 9;
/// What a shell makes of a child that was killed.
const KILLED_CHILD: i32 = 128 + SIGKILL;

impl Evidence<'_> {
    /// The verdict on a process whose end the agent has told.
    pub(crate) fn judge(&self, ended: &Ended) -> Outcome {
        let (exit_code, signal) = (ended.exit_code, ended.signal);
        let sane = match (exit_code, signal) {
            (Some(code), None) => (0..=255).contains(&code),
            (None, Some(signal)) => (1..=64).contains(&signal),
            _ => false,
        };
        if !sane || ended.cause() == Cause::Fault {
            return self.outcome(Reason::EngineFault, ended, true);
        }
        let reason = match ended.cause() {
            Cause::Timeout if self.time_is_over() => Reason::Timeout,
            Cause::OutputLimit => Reason::OutputLimit,
            Cause::Killed => self.reason_asked(),
            _ => self.reason_of_itself(exit_code, signal),
        };
        self.outcome(reason, ended, true)
    }

    /// The verdict on a process whose sandbox is gone, or whose end nobody saw.
    pub(crate) fn without_end(&self, survived: bool) -> Outcome {
        let reason = match self.asked {
            Some(_) if !survived => self.reason_asked(),
            _ => Reason::Lost,
        };
        self.outcome(reason, &Ended::default(), survived)
    }

    fn outcome(&self, reason: Reason, ended: &Ended, survived: bool) -> Outcome {
        let told = Duration::from_micros(ended.duration_us);
        let duration = match self.elapsed {
            Some(elapsed) if ended.duration_us == 0 || told > elapsed => elapsed,
            _ => told,
        };
        let fault = reason == Reason::EngineFault;
        Outcome {
            reason,
            exit_code: ended.exit_code.filter(|_| !fault),
            signal: ended.signal.filter(|_| !fault),
            duration,
            cpu_time: self.before.cpu_time(&self.now),
            peak_memory: self.before.most_memory(&self.now),
            truncated: ended.truncated || reason == Reason::OutputLimit,
            limits_hit: self.limits_hit(reason),
            sandbox_survived: survived,
        }
    }

    fn reason_asked(&self) -> Reason {
        match self.asked {
            Some(Asked::CpuTime | Asked::Timeout) => Reason::Timeout,
            Some(Asked::Cancel) | None => Reason::Cancelled,
        }
    }

    fn reason_of_itself(&self, exit_code: Option<i32>, signal: Option<i32>) -> Reason {
        let killed = signal == Some(SIGKILL) || exit_code == Some(KILLED_CHILD);
        if killed && self.ran_out_of_memory() {
            Reason::Oom
        } else if signal == Some(SIGKILL) && self.asked.is_some() {
            self.reason_asked()
        } else if signal.is_some() {
            Reason::Signaled
        } else {
            Reason::Exited
        }
    }

    fn limits_hit(&self, reason: Reason) -> Vec<LimitHit> {
        let cpu = reason == Reason::Timeout && self.asked == Some(Asked::CpuTime);
        let hits = [
            (self.ran_out_of_memory(), LimitHit::Memory),
            (grew(self.before.pids_refused, self.now.pids_refused), LimitHit::Pids),
            (self.disk_full, LimitHit::Disk),
            (cpu, LimitHit::Cpu),
            (reason == Reason::OutputLimit, LimitHit::Output),
        ];
        hits.into_iter().filter_map(|(hit, limit)| hit.then_some(limit)).collect()
    }

    fn ran_out_of_memory(&self) -> bool {
        grew(self.before.oom_kills, self.now.oom_kills)
    }

    /// Where the start is not known, the agent's clock is all there is.
    fn time_is_over(&self) -> bool {
        match (self.before.timeout(), self.elapsed) {
            (Some(timeout), Some(elapsed)) => elapsed >= timeout,
            (None, Some(_)) => false,
            (_, None) => true,
        }
    }
}

fn grew(before: Option<u64>, now: Option<u64>) -> bool {
    matches!((before, now), (Some(before), Some(now)) if now > before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: i32) -> Ended {
        Ended { exit_code: Some(code), duration_us: 1000, ..Ended::default() }
    }

    fn signaled(signal: i32, cause: Cause) -> Ended {
        let mut ended = Ended { signal: Some(signal), duration_us: 1000, ..Ended::default() };
        ended.set_cause(cause);
        ended
    }

    fn counters(oom_kills: u64, pids_refused: u64) -> Counters {
        Counters {
            oom_kills: Some(oom_kills),
            pids_refused: Some(pids_refused),
            cpu_time: Some(Duration::from_secs(3)),
            peak_memory: Some(77),
            ..Counters::default()
        }
    }

    /// A process with a timeout of ten seconds, that ended after twenty, with these counters.
    fn verdict(ended: &Ended, now: Counters, asked: Option<Asked>) -> Outcome {
        let note = Note::new(&counters(5, 5), Some(Duration::from_secs(10)), None);
        let elapsed = Some(Duration::from_secs(20));
        Evidence { before: &note, now, elapsed, asked, disk_full: false }.judge(ended)
    }

    #[test]
    fn the_reason_is_what_the_host_saw() {
        use Asked::{Cancel, CpuTime};
        use Cause::{Itself, Killed, OutputLimit, Timeout};
        let calm = counters(5, 5);
        let oom = counters(6, 5);
        let cases = [
            (exited(0), calm, None, Reason::Exited),
            (exited(0), oom, None, Reason::Exited),
            (exited(137), calm, None, Reason::Exited),
            (exited(137), oom, None, Reason::Oom),
            (signaled(9, Itself), calm, None, Reason::Signaled),
            (signaled(9, Itself), oom, None, Reason::Oom),
            (signaled(11, Itself), oom, None, Reason::Signaled),
            (signaled(9, Timeout), calm, None, Reason::Timeout),
            (signaled(9, Timeout), oom, None, Reason::Timeout),
            (signaled(9, OutputLimit), calm, None, Reason::OutputLimit),
            (signaled(9, Killed), calm, None, Reason::Cancelled),
            (signaled(9, Killed), calm, Some(Cancel), Reason::Cancelled),
            (signaled(9, Killed), calm, Some(CpuTime), Reason::Timeout),
            (signaled(9, Itself), calm, Some(Cancel), Reason::Cancelled),
            (exited(0), calm, Some(Cancel), Reason::Exited),
            (signaled(9, Cause::Fault), calm, None, Reason::EngineFault),
            (exited(256), calm, None, Reason::EngineFault),
            (exited(-1), calm, None, Reason::EngineFault),
            (signaled(0, Itself), calm, None, Reason::EngineFault),
            (Ended::default(), calm, None, Reason::EngineFault),
            (Ended { signal: Some(9), ..exited(0) }, calm, None, Reason::EngineFault),
            (Ended { cause: 99, ..exited(3) }, calm, None, Reason::Exited),
        ];
        for (ended, now, asked, reason) in cases {
            let outcome = verdict(&ended, now, asked);
            assert_eq!(outcome.reason, reason, "{ended:?} {asked:?} {:?}", now.oom_kills);
            assert!(outcome.sandbox_survived);
        }
    }

    #[test]
    fn a_limit_that_was_run_into_is_told_whatever_the_end() {
        use LimitHit::{Cpu, Memory, Output, Pids};
        let cases = [
            (exited(0), counters(5, 5), None, vec![]),
            (exited(0), counters(6, 5), None, vec![Memory]),
            (exited(1), counters(5, 9), None, vec![Pids]),
            (signaled(9, Cause::Itself), counters(6, 6), None, vec![Memory, Pids]),
            (signaled(9, Cause::Killed), counters(5, 5), Some(Asked::CpuTime), vec![Cpu]),
            (exited(0), counters(5, 5), Some(Asked::CpuTime), vec![]),
            (signaled(9, Cause::OutputLimit), counters(5, 5), None, vec![Output]),
        ];
        for (ended, now, asked, hits) in cases {
            assert_eq!(verdict(&ended, now, asked).limits_hit, hits, "{ended:?}");
        }
    }

    #[test]
    fn a_full_disk_is_told() {
        let note = Note::default();
        let evidence = Evidence {
            before: &note,
            now: Counters::default(),
            elapsed: None,
            asked: None,
            disk_full: true,
        };

        assert_eq!(evidence.judge(&exited(1)).limits_hit, [LimitHit::Disk]);
    }

    #[test]
    fn a_timeout_before_its_time_is_a_lie() {
        let early = |timeout| {
            let note = Note::new(&Counters::default(), timeout, None);
            let elapsed = Some(Duration::from_secs(1));
            let now = Counters::default();
            Evidence { before: &note, now, elapsed, asked: None, disk_full: false }
                .judge(&signaled(9, Cause::Timeout))
                .reason
        };

        assert_eq!(early(Some(Duration::from_secs(2))), Reason::Signaled);
        assert_eq!(early(None), Reason::Signaled);
        assert_eq!(early(Some(Duration::from_secs(1))), Reason::Timeout);
    }

    #[test]
    fn no_process_ran_longer_than_the_host_knows_of_it() {
        let lie = Ended { duration_us: u64::MAX, ..exited(0) };

        assert_eq!(verdict(&lie, counters(5, 5), None).duration, Duration::from_secs(20));
        assert_eq!(verdict(&exited(0), counters(5, 5), None).duration, Duration::from_millis(1));
    }

    #[test]
    fn without_an_end_only_our_own_verdict_stands() {
        let note = Note::default();
        let lost = |asked, survived| {
            let now = Counters::default();
            Evidence { before: &note, now, elapsed: None, asked, disk_full: false }
                .without_end(survived)
        };

        assert_eq!(lost(None, false).reason, Reason::Lost);
        assert_eq!(lost(None, true).reason, Reason::Lost);
        assert_eq!(lost(Some(Asked::Timeout), false).reason, Reason::Timeout);
        assert_eq!(lost(Some(Asked::CpuTime), false).limits_hit, [LimitHit::Cpu]);
        assert_eq!(lost(Some(Asked::Cancel), false).reason, Reason::Cancelled);
        assert!(!lost(Some(Asked::Cancel), false).sandbox_survived);
    }

    #[test]
    fn where_the_kernel_counts_nothing_nothing_is_claimed() {
        let note = Note::new(&Counters::default(), None, None);
        let now = counters(9, 9);
        let evidence =
            Evidence { before: &note, now, elapsed: None, asked: None, disk_full: false };

        let outcome = evidence.judge(&signaled(9, Cause::Itself));

        assert_eq!(outcome.reason, Reason::Signaled);
        assert_eq!(outcome.limits_hit, []);
        assert_eq!(outcome.cpu_time, Duration::ZERO);
    }
}
