//! What engines give, as tables.

use atoll_types::engine::{EngineInfo, Isolation, Strength};

use crate::{
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
