//! One claim, and what it means that it does not hold.

use std::{error::Error as _, fmt, sync::Arc};

use futures_util::future::BoxFuture;

use super::Stage;
use crate::{Error, ErrorKind, Result};

pub(super) type CaseResult = Result<(), Failure>;

/// A claim about every engine.
#[derive(Clone)]
pub struct Case {
    name: String,
    body: Arc<dyn Fn(Stage) -> BoxFuture<'static, CaseResult> + Send + Sync>,
}

/// Why a case did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The engine said that it cannot do what the case is about.
    Refused(String),
    Broken(String),
}

/// Makes `cases()` of the functions of a module, each named after its module and itself.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(super) fn cases() -> Vec<super::Case> {
            let area = module_path!().rsplit("::").next().unwrap_or_default();
            vec![$(super::Case::new(
                format!("{area}::{}", stringify!($name)),
                |stage| Box::pin($name(stage)),
            )),*]
        }
    };
}
pub(super) use cases;

impl Case {
    pub(super) fn new(
        name: String,
        body: impl Fn(Stage) -> BoxFuture<'static, CaseResult> + Send + Sync + 'static,
    ) -> Self {
        Self { name, body: Arc::new(body) }
    }

    /// `area::claim`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it, waits for what it made to be destroyed, and says how it went.
    pub fn run(&self, stage: &Stage) -> Result<(), Failure> {
        stage.perform(self.body.as_ref())
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(what) => write!(f, "refused as unsupported: {what}"),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut text = format!("unexpected {:?}: {error}", error.kind());
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::Broken(text)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(format!("the case itself: {error}"))
    }
}

/// A case that fails for this reason.
pub(super) fn broken<T>(why: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Broken(why.into()))
}

pub(super) fn check(holds: bool, otherwise: impl FnOnce() -> String) -> CaseResult {
    if holds { Ok(()) } else { broken(otherwise()) }
}

/// Whole values, compared.
#[expect(clippy::needless_pass_by_value, reason = "expected values are written in place")]
pub(super) fn same<T: fmt::Debug + PartialEq>(what: &str, seen: T, expected: T) -> CaseResult {
    check(seen == expected, || format!("{what}: {seen:?}, not {expected:?}"))
}

/// The call failed, and in this way; its message is given back.
pub(super) fn fails<T>(what: &str, kind: ErrorKind, seen: Result<T>) -> Result<String, Failure> {
    match seen {
        Ok(_) => broken(format!("{what} succeeded instead of {kind:?}")),
        Err(error) if error.kind() == kind => Ok(error.message().to_owned()),
        Err(error) => broken(format!("{what}: {:?} ({error}), not {kind:?}", error.kind())),
    }
}

/// What was asked for, unless the engine refuses exactly that.
///
/// The refusal has to name it: one that is about something else does not count.
pub(super) fn unless_refused<T>(what: &str, seen: Result<T>) -> Result<T, Failure> {
    match seen {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            check(error.message().contains(what), || {
                format!("asked for `{what}`, the refusal does not name it: {error}")
            })?;
            Err(Failure::Refused(what.to_owned()))
        }
        other => Ok(other?),
    }
}
