//! The tier as a test program: one test for each check, one for each control, and a last word.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::{
    canary,
    check::Control,
    checks, run,
    subject::{Exceptions, Subject},
    world::World,
};

/// Where CI says that a missing engine is a failure.
const REQUIRED: &str = "ATOLL_REQUIRE_ENGINES";

type Body = Box<dyn FnOnce(&Arc<World>) -> Result<(), Failed> + Send>;

type Lazy = Arc<Mutex<Option<Arc<World>>>>;

/// Runs the tests that the command line asks for, on this engine.
#[expect(clippy::disallowed_methods, reason = "a test's settings are its environment")]
pub fn main(subject: fn() -> Result<Arc<dyn Subject>>, exceptions: &Exceptions) -> ExitCode {
    let arguments = Arguments::from_args();
    let Some(variable) = std::env::var(canary::VARIABLE).ok() else { return with_canary() };
    protect();
    settle();
    let required = std::env::var_os(REQUIRED).is_some();
    let made = subject().map_err(|error| format!("{error:#}"));
    let made = made.and_then(|subject| subject.missing().map_or(Ok(subject), Err));
    // Held to the end: what it keeps open is no sandbox's.
    let _kept = made.clone();
    let before = own();
    let world = Lazy::default();
    let maker = made.map(|subject| Maker { world: Arc::clone(&world), subject, variable });
    let trials = trials(&maker, exceptions, required);
    let conclusion = libtest_mimic::run(&arguments, trials);
    for (name, reason) in exceptions.iter() {
        say(&format!("not applicable: {name}: {reason}"));
    }
    drop(maker);
    let held = world.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(held) = held else { return conclusion.exit_code() };
    last_word(held, before, conclusion.exit_code())
}

/// Starts this program again with a secret in its environment.
fn with_canary() -> ExitCode {
    let again = || -> Result<std::io::Error> {
        let program = std::env::current_exe()?;
        let arguments = std::env::args_os().skip(1);
        let secret = canary::token()?;
        Ok(Command::new(program).args(arguments).env(canary::VARIABLE, secret).exec())
    };
    say(&format!("cannot start again: {:?}", again()));
    ExitCode::FAILURE
}

/// Asks the kernel to spare this program when memory is short, as services do, so that the checks
/// see whether guests inherit that.
fn protect() {
    fs::write("/proc/self/oom_score_adj", "-500").ok();
}

/// Does once what leaves something open for as long as a process lives: tokio's handling of the
/// ends of children.
fn settle() {
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
        runtime.block_on(async { tokio::process::Command::new("/bin/true").status().await.ok() });
    }
}

/// The one world, made by whoever needs it first.
#[derive(Clone)]
struct Maker {
    world: Lazy,
    subject: Arc<dyn Subject>,
    variable: String,
}

impl Maker {
    fn world(self) -> Result<Arc<World>, Failed> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        if world.is_none() {
            let made = World::new(self.subject, self.variable);
            *world = Some(made.map_err(|error| format!("{error:#}"))?);
        }
        world.clone().ok_or_else(|| "no world".into())
    }
}

/// One test for each check and each control; what is excepted is ignored, and a list of exceptions
/// that names no test is one more test, which fails.
fn trials(make: &Result<Maker, String>, exceptions: &Exceptions, required: bool) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut names = Vec::new();
    let ignored = make.is_err() && !required;
    let mut add = |name: String, body: Body| {
        let (make, reason) = (make.clone(), exceptions.reason(&name).map(str::to_owned));
        names.push(name.clone());
        let excepted = reason.is_some();
        let trial = Trial::test(name, move || match (reason, make) {
            (Some(reason), _) => Err(format!("not applicable: {reason}").into()),
            (None, Err(why)) => Err(format!("the engine is missing: {why}").into()),
            (None, Ok(make)) => body(&make.world()?),
        });
        trials.push(trial.with_ignored_flag(ignored || excepted));
    };
    for check in checks::all() {
        let (name, control) = (format!("{} {}", check.id, check.claim), check.control);
        let sound = check.clone();
        add(name.clone(), Box::new(move |world| run::sound(world, &sound)));
        match control {
            Control::None(_) => {}
            Control::Against(_) | Control::Eventually(_) => {
                let chance = matches!(control, Control::Eventually(_));
                let body = move |world: &Arc<World>| run::control(world, &check, chance);
                add(format!("{name} (control)"), Box::new(body));
            }
        }
    }
    let strangers = exceptions.strangers(&names);
    trials.push(Trial::test("every_exception_names_a_test", move || {
        if strangers.is_empty() { Ok(()) } else { Err(format!("{strangers:?}").into()) }
    }));
    trials
}

/// What this process itself holds (I2): descriptors and threads. The programs the engine keeps in
/// memory for as long as it lives do not count.
fn own() -> (usize, usize) {
    let kept = |target: &&std::path::PathBuf| {
        !target.starts_with("/memfd:atoll-launcher (deleted)")
            && !target.starts_with("/memfd:atoll-agent (deleted)")
    };
    let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    (descriptors().iter().filter(kept).count(), threads)
}

fn descriptors() -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}

/// Ends the world and tells what is left of it, what was vacuous, and what has no control.
fn last_word(world: Arc<World>, before: (usize, usize), code: ExitCode) -> ExitCode {
    let notes = world.notes();
    let ended = world.end().and_then(|()| {
        let deadline = Instant::now() + run::SOON;
        while own() != before && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let after = own();
        anyhow::ensure!(
            after == before,
            "I2: {after:?} descriptors and threads, not {before:?}: {:?}",
            descriptors()
        );
        Ok(())
    });
    for note in notes {
        say(&format!("note: {note}"));
    }
    for check in checks::all() {
        if let Control::None(why) = check.control {
            say(&format!("without control: {} {}: {why}", check.id, check.claim));
        }
    }
    match ended.context("after everything") {
        Ok(()) => code,
        Err(error) => {
            say(&format!("FAILED {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the last words of a test program")]
fn say(text: &str) {
    println!("{text}");
}
