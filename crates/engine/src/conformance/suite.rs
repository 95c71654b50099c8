//! Runs the cases as a test program, and holds an engine to its list of what it refuses.

use std::{collections::BTreeSet, io::Write as _, process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use super::{
    Failure, Stage, Subject,
    case::{CaseResult, check},
    cases,
};

/// Set where a missing engine must not pass for a working one.
const REQUIRE_ENGINES: &str = "ATOLL_REQUIRE_ENGINES";

/// The `main` of an engine's conformance test.
///
/// Where the engine's probe fails, its cases are ignored, or failed if `ATOLL_REQUIRE_ENGINES` is
/// set.
pub fn run(subject: &Subject) -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Runtime::new().expect("a runtime starts");
    let stage = Stage::new(subject.clone(), runtime.handle().clone()).expect("a directory is made");
    let problem = runtime.block_on(stage.engine().probe()).err().map(|error| {
        let hint = error.advice().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("the engine is not available here: {error}{hint}")
    });

    let conclusion = libtest_mimic::run(&arguments, trials(subject, &stage, problem.as_deref()));
    if arguments.list || problem.is_some() {
        return conclusion.exit_code();
    }
    match census(subject, &stage, &runtime) {
        Ok(()) => conclusion.exit_code(),
        Err(remains) => {
            let _ = writeln!(std::io::stderr(), "census: {remains}");
            ExitCode::FAILURE
        }
    }
}

fn trials(subject: &Subject, stage: &Stage, problem: Option<&str>) -> Vec<Trial> {
    let listed = Arc::new(listed(subject.unsupported));
    let known: BTreeSet<_> = cases().iter().map(|case| case.name().to_owned()).collect();
    let strays: Vec<_> = listed.difference(&known).cloned().collect();
    let mut trials = vec![Trial::test("suite::the_refused_cases_exist", move || {
        check(strays.is_empty(), || format!("no such cases: {strays:?}")).map_err(Failed::from)
    })];
    trials.extend(cases().into_iter().map(|case| {
        let (stage, listed) = (stage.clone(), Arc::clone(&listed));
        let (name, problem) = (case.name().to_owned(), problem.map(str::to_owned));
        let ignored = problem.is_some() && !engines_are_required();
        Trial::test(name, move || match problem {
            Some(problem) => Err(problem.into()),
            None => judge(case.run(&stage), listed.contains(case.name())).map_err(Failed::from),
        })
        .with_ignored_flag(ignored)
    }));
    trials
}

/// A refusal passes exactly if it is listed.
fn judge(result: CaseResult, listed: bool) -> CaseResult {
    match (result, listed) {
        (Ok(()), false) | (Err(Failure::Refused(_)), true) => Ok(()),
        (Ok(()), true) => {
            Err(Failure::Broken("listed as unsupported, and yet it works: unlist it".into()))
        }
        (Err(failure), _) => Err(failure),
    }
}

/// The names in a list: one to a line, `#` begins a remark.
fn listed(text: &str) -> BTreeSet<String> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What is left when every case has cleaned up after itself: nothing.
fn census(subject: &Subject, stage: &Stage, runtime: &Runtime) -> Result<(), String> {
    let sandboxes = runtime.block_on(stage.engine().list()).map_err(|error| error.to_string())?;
    if !sandboxes.is_empty() {
        return Err(format!("sandboxes are left: {sandboxes:?}"));
    }
    subject.census.as_ref().map_or(Ok(()), |census| census(&stage.state()))
}

#[expect(clippy::disallowed_methods, reason = "the test program's only setting")]
fn engines_are_required() -> bool {
    std::env::var_os(REQUIRE_ENGINES).is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> CaseResult {
        Err(Failure::Refused("memory".into()))
    }

    fn broken() -> CaseResult {
        Err(Failure::Broken("wrong".into()))
    }

    #[test]
    fn a_refusal_passes_exactly_if_it_is_listed() {
        assert!(judge(Ok(()), false).is_ok());
        assert!(judge(refused(), true).is_ok());

        assert!(judge(refused(), false).is_err());
        assert!(judge(Ok(()), true).is_err());
        assert!(judge(broken(), true).is_err());
        assert!(judge(broken(), false).is_err());
    }

    #[test]
    fn remarks_and_empty_lines_name_no_case() {
        let names = listed("# why\n\nlimits::a # here\n  files::b\n");

        assert_eq!(names, BTreeSet::from(["limits::a".to_owned(), "files::b".to_owned()]));
    }

    #[test]
    fn no_two_cases_have_one_name() {
        let names: BTreeSet<_> = cases().iter().map(|case| case.name().to_owned()).collect();

        assert_eq!(names.len(), cases().len());
    }
}
