//! What engines give, as tables.

use atoll_types::engine::{EngineInfo, Isolation, Strength};

use crate::{
    doctor::{
        host::{Finding, State},
        known_bad::Verdict,
        programs::Found,
    },
    printer::{Printer, Tone},
    words,
};

/// How wide a column of texts may be.
const WIDE: usize = 72;

/// One line for each engine.
pub(crate) fn engines(printer: Printer, engines: &[EngineInfo]) -> String {
    let rows = engines.iter().map(|engine| {
        let (tone, state) =
            if engine.available { (Tone::Good, "ready") } else { (Tone::Bad, "not here") };
        let about = match &engine.problem {
            Some(problem) => problem.clone(),
            None => isolation(engine.isolation).to_owned(),
        };
        [engine.name.clone(), printer.word(tone, state), about]
    });
    printer.table(&["ENGINE", "STATE", "WHAT SEPARATES IT FROM THE HOST"], rows)
}

fn isolation(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::None => "nothing: for trusted code, if the settings allow it",
        Isolation::Kernel => "one kernel, fenced: namespaces, cgroups, seccomp",
        Isolation::Machine => "a kernel of its own",
    }
}

/// How well each limit holds.
pub(crate) fn grades(printer: Printer, engines: &[EngineInfo]) -> String {
    let rows = engines.iter().flat_map(|engine| {
        engine.grades.iter().map(move |grade| {
            let (tone, strength) = match grade.strength {
                Strength::Full => (Tone::Good, "full"),
                Strength::Weak => (Tone::Weak, "weak"),
                Strength::Refused => (Tone::Bad, "refused"),
            };
            let strength = printer.word(tone, strength);
            [engine.name.clone(), grade.limit.clone(), strength, grade.by.clone()]
        })
    });
    printer.table(&["ENGINE", "LIMIT", "HOLDS", "BY"], rows)
}

/// What else there is to know of this host.
pub(crate) fn facts(printer: Printer, engines: &[EngineInfo]) -> String {
    let rows = engines.iter().flat_map(|engine| {
        engine.facts.iter().flat_map(move |fact| {
            words::wrap(&fact.value, WIDE).into_iter().enumerate().map(move |(line, value)| {
                let first = |text: &str| if line == 0 { text.to_owned() } else { String::new() };
                [first(&engine.name), first(&fact.name), value]
            })
        })
    });
    printer.table(&["ENGINE", "FACT", "VALUE"], rows)
}

/// What the host says about making sandboxes, and how to change it.
pub(crate) fn host(printer: Printer, findings: &[Finding]) -> String {
    let rows = findings.iter().flat_map(|finding| {
        let (tone, state) = match finding.state {
            State::Good => (Tone::Good, "good"),
            State::Weak => (Tone::Weak, "note"),
            State::Bad => (Tone::Bad, "bad"),
        };
        let about = words::wrap(&finding.about, WIDE);
        let fix = finding.fix.map(|fix| words::wrap(&format!("fix: {fix}"), WIDE));
        let lines = about.into_iter().chain(fix.into_iter().flatten());
        lines.enumerate().map(move |(line, text)| {
            if line == 0 {
                [finding.name.to_owned(), printer.word(tone, state), text]
            } else {
                [String::new(), String::new(), text]
            }
        })
    });
    printer.table(&["HOST", "STATE", "ABOUT"], rows)
}

/// Versions, and what is known against them.
pub(crate) fn versions(printer: Printer, versions: &[Found]) -> String {
    let rows = versions.iter().flat_map(|found| {
        let (tone, verdict) = match (&found.version, found.verdict) {
            (None, _) => (Tone::Plain, "not here"),
            (_, Verdict::Fine) => (Tone::Good, "fine"),
            (_, Verdict::Unknown) => (Tone::Weak, "unknown"),
            (_, Verdict::LookUp) => (Tone::Weak, "look up"),
            (_, Verdict::Bad) => (Tone::Bad, "bad"),
        };
        let problems = found.problems.iter().flat_map(|problem| {
            let told = format!("{}: {}; fixed in {}", problem.id, problem.about, problem.fixed);
            words::wrap(&told, WIDE)
        });
        let about = std::iter::once(format!("used by: {}", found.used_by)).chain(problems);
        let version = found.version.clone().unwrap_or_default();
        let first = [found.name.clone(), version, printer.word(tone, verdict)];
        about.enumerate().map(move |(line, text)| {
            let [name, version, verdict] =
                if line == 0 { first.clone() } else { Default::default() };
            [name, version, verdict, text]
        })
    });
    printer.table(&["PROGRAM", "VERSION", "VERDICT", "ABOUT"], rows)
}
