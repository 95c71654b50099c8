//! Another OCI runtime: gVisor, where the tests have it.

use std::{path::PathBuf, sync::Arc};

use atoll_engine::{Command, Engine as _, Reason, Spec};
use atoll_test_dockerd::{Dockerd, Missing, Options, Runtime as Oci};
use tokio::runtime::Runtime;

use crate::{
    Test,
    stage::{Made, Stage, spec},
};

pub(crate) const TESTS: [Test; 1] = [("runtime::gvisor_runs_sandboxes", gvisor_runs_sandboxes)];

fn gvisor_runs_sandboxes(_: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let program = runsc()?;
    let flags = ["--platform=systrap", "--network=none", "--host-uds=create"];
    let runsc =
        Oci { name: "runsc".to_owned(), program, arguments: flags.map(str::to_owned).to_vec() };
    let daemon = Dockerd::with(Options { runtimes: vec![runsc], ..Options::default() })?;
    let stage = Stage::new(Arc::new(daemon));
    let spec = Spec { runtime: Some("runsc".to_owned()), ..spec() };

    let made = Made::new(&stage.engine(), &spec, runtime);

    // Its own kernel answers, and not this one.
    assert!(made.sh("cat /proc/version").contains("Linux version 4.4"));
    assert_eq!(made.sh("id -u; echo x > file; cat file"), "1000\nx\n");
    let running = atoll_engine::exec(&made.sandbox, Command::shell("exit 7"), None);
    let outcome = runtime.block_on(running).unwrap().outcome;
    assert_eq!((outcome.reason, outcome.exit_code), (Reason::Exited, Some(7)));
    let found = runtime.block_on(stage.engine().attach(made.sandbox.id())).unwrap();
    assert!(found.is_some());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a test's own place, as scripts/setup has it")]
fn runsc() -> Result<PathBuf, Missing> {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let program = PathBuf::from(home).join(".cache/atoll/runsc");
    let missing = || Missing("there is no runsc: run scripts/setup tests".to_owned());
    program.exists().then_some(program).ok_or_else(missing)
}
