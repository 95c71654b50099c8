//! Which limits a sandbox gets: what was asked for, else what its environment says.

use std::time::Duration;

use atoll_engine::{MAX_OUTPUT, Probe};
use atoll_types::{
    engine::{Grade, Strength},
    limits::Limits,
    quantity::{Size, Span},
};

use crate::{Error, Result};

/// What an environment that says nothing gives.
pub(crate) const DEFAULTS: Limits = Limits {
    memory: Some(Size(512 << 20)),
    cpus: None,
    cpu_time: None,
    pids: Some(128),
    open_files: Some(1024),
    output: Some(Size(8 << 20)),
    disk: Some(Size(256 << 20)),
};

/// Refuses what is no limit, or more than the operator allows; the error names the field.
pub(crate) fn check(asked: &Limits, most: &Limits) -> Result<()> {
    let size = |size: Option<Size>| size.map(|size| (size.0, size.to_string()));
    let number = |number: Option<u32>| number.map(|n| (u64::from(n), n.to_string()));
    whole("memory", size(asked.memory), size(most.memory))?;
    whole("pids", number(asked.pids), number(most.pids))?;
    whole("open_files", number(asked.open_files), number(most.open_files))?;
    let output = most.output.map_or(MAX_OUTPUT, |most| most.0.min(MAX_OUTPUT));
    whole("output", size(asked.output), size(Some(Size(output))))?;
    whole("disk", size(asked.disk), size(most.disk))?;
    cpus(asked.cpus, most.cpus)?;
    if let Some(asked) = asked.cpu_time {
        span("limits.cpu_time", asked, most.cpu_time.map(|most| most.0))?;
    }
    Ok(())
}

type Amount = Option<(u64, String)>;

fn whole(field: &str, asked: Amount, most: Amount) -> Result<()> {
    match (asked, most) {
        (Some((0, _)), _) => Err(Error::invalid(format!("`limits.{field}` must not be zero"))),
        (Some((asked, shown)), Some((most, bound))) if asked > most => {
            Err(too_large(&format!("limits.{field}"), &shown, &bound))
        }
        _ => Ok(()),
    }
}

fn cpus(asked: Option<f64>, most: Option<f64>) -> Result<()> {
    let Some(asked) = asked else { return Ok(()) };
    if !(asked.is_finite() && asked > 0.0) {
        return Err(Error::invalid("`limits.cpus` must be a number above zero"));
    }
    match most {
        Some(most) if asked > most => {
            Err(too_large("limits.cpus", &asked.to_string(), &most.to_string()))
        }
        _ => Ok(()),
    }
}

/// Refuses a time that is zero or longer than allowed.
pub(crate) fn span(field: &str, asked: Span, most: Option<Duration>) -> Result<Duration> {
    if asked.0.is_zero() {
        return Err(Error::invalid(format!("`{field}` must not be zero")));
    }
    match most {
        Some(most) if asked.0 > most => {
            Err(too_large(field, &asked.to_string(), &Span(most).to_string()))
        }
        _ => Ok(asked.0),
    }
}

fn too_large(field: &str, asked: &str, most: &str) -> Error {
    Error::invalid(format!("`{field}` is {asked}; this server allows at most {most}"))
        .hint(format!("ask for less, or let the operator raise the maximum of `{field}`"))
}

/// What was asked for, completed by `defaults` as far as this engine can hold them: a limit that
/// nobody asked for is left out where the engine would refuse it. Also tells which do not hold
/// fully, and which were left out.
pub(crate) fn resolve(
    asked: Limits,
    defaults: Limits,
    most: &Limits,
    probe: &Probe,
) -> (Limits, Vec<Grade>) {
    let wanted = asked.or(least(defaults, most));
    let refused = |limit: &str| {
        probe.grades.iter().any(|grade| grade.limit == limit && grade.strength == Strength::Refused)
    };
    let mut limits = wanted;
    limits.memory = wanted.memory.filter(|_| asked.memory.is_some() || !refused("memory"));
    limits.cpus = wanted.cpus.filter(|_| asked.cpus.is_some() || !refused("cpus"));
    limits.cpu_time = wanted.cpu_time.filter(|_| asked.cpu_time.is_some() || !refused("cpu_time"));
    limits.pids = wanted.pids.filter(|_| asked.pids.is_some() || !refused("pids"));
    limits.open_files =
        wanted.open_files.filter(|_| asked.open_files.is_some() || !refused("open_files"));
    limits.disk = wanted.disk.filter(|_| asked.disk.is_some() || !refused("disk"));
    let said = |limit: &str| match limit {
        "memory" => wanted.memory.is_some(),
        "cpus" => wanted.cpus.is_some(),
        "cpu_time" => wanted.cpu_time.is_some(),
        "pids" => wanted.pids.is_some(),
        "open_files" => wanted.open_files.is_some(),
        "disk" => wanted.disk.is_some(),
        _ => false,
    };
    let weaker = |grade: &&Grade| grade.strength != Strength::Full && said(&grade.limit);
    (limits, probe.grades.iter().filter(weaker).cloned().collect())
}

/// Defaults never exceed the operator's maxima.
pub(crate) fn least(defaults: Limits, most: &Limits) -> Limits {
    fn min<T: PartialOrd>(one: Option<T>, most: Option<T>) -> Option<T> {
        match (one, most) {
            (Some(one), Some(most)) if one > most => Some(most),
            (one, _) => one,
        }
    }
    Limits {
        memory: min(defaults.memory, most.memory),
        cpus: min(defaults.cpus, most.cpus),
        cpu_time: min(defaults.cpu_time, most.cpu_time),
        pids: min(defaults.pids, most.pids),
        open_files: min(defaults.open_files, most.open_files),
        output: min(defaults.output, most.output),
        disk: min(defaults.disk, most.disk),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn nothing_and_not_a_number_are_no_limits() {
        let zero = Some(Size(0));
        for asked in [
            Limits { memory: zero, ..Limits::default() },
            Limits { disk: zero, ..Limits::default() },
            Limits { output: zero, ..Limits::default() },
            Limits { pids: Some(0), ..Limits::default() },
            Limits { open_files: Some(0), ..Limits::default() },
            Limits { cpus: Some(0.0), ..Limits::default() },
            Limits { cpus: Some(-1.0), ..Limits::default() },
            Limits { cpus: Some(f64::NAN), ..Limits::default() },
            Limits { cpus: Some(f64::INFINITY), ..Limits::default() },
            Limits { cpu_time: Some(Span(Duration::ZERO)), ..Limits::default() },
        ] {
            let error = check(&asked, &Limits::default()).unwrap_err();
            assert_eq!(error.code, Code::InvalidRequest, "{asked:?}");
            assert!(error.message.contains("`limits."), "{}", error.message);
        }
    }

    #[test]
    fn more_than_the_operator_allows_is_refused_by_name() {
        let most = Limits { memory: Some(Size(1 << 30)), cpus: Some(2.0), ..Limits::default() };
        let asked = Limits { memory: Some(Size(2 << 30)), ..Limits::default() };

        let error = check(&asked, &most).unwrap_err();

        assert_eq!(error.message, "`limits.memory` is 2g; this server allows at most 1g");
        assert!(check(&Limits { cpus: Some(2.5), ..Limits::default() }, &most).is_err());
        assert!(check(&Limits { cpus: Some(2.0), ..Limits::default() }, &most).is_ok());
    }

    #[test]
    fn output_is_bounded_also_where_the_operator_says_nothing() {
        let asked = Limits { output: Some(Size(MAX_OUTPUT + 1)), ..Limits::default() };

        assert!(check(&asked, &Limits::default()).is_err());
    }

    #[test]
    fn a_default_the_engine_refuses_is_left_out_but_a_wish_is_not() {
        let grade = |limit: &str| Grade {
            limit: limit.to_owned(),
            strength: Strength::Refused,
            by: String::new(),
        };
        let probe = Probe { grades: vec![grade("memory"), grade("disk")], facts: vec![] };
        let asked = Limits { disk: Some(Size(1 << 20)), ..Limits::default() };

        let (limits, grades) = resolve(asked, DEFAULTS, &Limits::default(), &probe);

        assert_eq!(limits.memory, None);
        assert_eq!(limits.disk, Some(Size(1 << 20)));
        assert_eq!(limits.pids, DEFAULTS.pids);
        assert_eq!(grades, probe.grades);
    }

    #[test]
    fn a_limit_nobody_wants_is_not_graded() {
        let weak =
            |limit: &str, strength| Grade { limit: limit.to_owned(), strength, by: String::new() };
        let grades = vec![
            weak("cpus", Strength::Refused),
            weak("pids", Strength::Weak),
            weak("memory", Strength::Full),
            weak("timeout", Strength::Weak),
        ];
        let probe = Probe { grades, facts: vec![] };

        let (_, told) = resolve(Limits::default(), DEFAULTS, &Limits::default(), &probe);

        assert_eq!(told, [weak("pids", Strength::Weak)]);
    }

    #[test]
    fn defaults_stay_below_the_maxima() {
        let most = Limits { memory: Some(Size(1 << 20)), ..Limits::default() };

        let (limits, _) = resolve(Limits::default(), DEFAULTS, &most, &Probe::default());

        assert_eq!(limits.memory, Some(Size(1 << 20)));
    }
}
