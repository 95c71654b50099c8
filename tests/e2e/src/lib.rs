//! Whole stories with the real program: what these tests share.

mod census;
mod daemon;
mod docker;

use std::{future::Future, pin::Pin, process::ExitCode};

use anyhow::Result;
pub use census::Census;
pub use daemon::Daemon;
pub use docker::Harbour;
use libtest_mimic::{Arguments, Failed, Trial};

/// A story's end: told, or what went wrong.
pub type Telling = Pin<Box<dyn Future<Output = Result<()>>>>;

/// Begins to tell.
pub type Story = fn() -> Telling;

/// Tells stories as tests, one at a time.
///
/// The `namespace` engine needs root: without it they are ignored, and fail where
/// `ATOLL_REQUIRE_ENGINES` says that they must be told.
pub fn tell(stories: Vec<(&'static str, Story)>) -> ExitCode {
    let root = rustix::process::geteuid().is_root();
    tell_unless((!root).then_some("the namespace engine needs root"), stories)
}

/// The same, unless something is missing here.
pub fn tell_unless(missing: Option<&str>, stories: Vec<(&'static str, Story)>) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "tests have no settings of their own")]
    let required = std::env::var_os("ATOLL_REQUIRE_ENGINES").is_some();
    let ignored = missing.is_some() && !required;
    let trials = stories.into_iter().map(|(name, story)| {
        let missing = missing.map(str::to_owned);
        let test = move || missing.map_or_else(|| told(story), |missing| Err(missing.into()));
        Trial::test(name, test).with_ignored_flag(ignored)
    });
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn told(story: Story) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(story()).map_err(|error| format!("{error:?}").into())
}
