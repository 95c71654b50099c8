//! The middle and the bad end of many times.

use std::time::Duration;

use serde::Serialize;

/// What is told of one subject's times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) name: String,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) runs: usize,
}

impl Summary {
    pub(crate) fn of(name: &str, times: &[Duration]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        Self {
            name: name.to_owned(),
            p50_ms: milliseconds(quantile(&sorted, 50)),
            p95_ms: milliseconds(quantile(&sorted, 95)),
            runs: times.len(),
        }
    }
}

/// The smallest of the sorted times that `percent` of them do not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_tail_are_times_that_occurred() {
        let times: Vec<_> = (1..=20).rev().map(Duration::from_millis).collect();

        let summary = Summary::of("x", &times);

        assert_eq!((summary.p50_ms, summary.p95_ms, summary.runs), (10.0, 19.0, 20));
    }

    #[test]
    fn one_run_is_its_own_median() {
        let summary = Summary::of("x", &[Duration::from_millis(7)]);

        assert_eq!((summary.p50_ms, summary.p95_ms), (7.0, 7.0));
    }
}
