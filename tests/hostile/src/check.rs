//! A claim about sandboxes, how to see whether it holds, and how to see it fail.

use std::{fmt, future::Future, sync::Arc};

use anyhow::Result;
use futures_util::future::BoxFuture;

use crate::stage::Stage;

type Run = Arc<dyn Fn(Arc<Stage>) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// One named check of the catalogue.
#[derive(Clone)]
pub struct Check {
    pub id: &'static str,
    pub claim: &'static str,
    /// Uses much processor time or memory: one of these at a time.
    pub heavy: bool,
    pub control: Control,
    pub(crate) run: Run,
}

/// How a check is shown to be able to fail.
#[derive(Debug, Clone, Copy)]
pub enum Control {
    /// Run against this, it must fail.
    Against(&'static str),
    /// Run against this, it must fail sooner or later: each run is a throw of dice.
    Eventually(&'static str),
    /// There is none, and why.
    None(&'static str),
}

/// The claim does not hold: the one failure a control may show.
#[derive(Debug)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.claim)
    }
}

/// A check without a control so far.
pub fn check<F, R>(id: &'static str, claim: &'static str, run: F) -> Check
where
    F: Fn(Arc<Stage>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<()>> + Send + 'static,
{
    Check {
        id,
        claim,
        heavy: false,
        control: Control::None("none was written"),
        run: Arc::new(move |stage| Box::pin(run(stage))),
    }
}

impl Check {
    #[must_use]
    pub fn heavy(mut self) -> Self {
        self.heavy = true;
        self
    }

    #[must_use]
    pub fn against(mut self, what: &'static str) -> Self {
        self.control = Control::Against(what);
        self
    }

    #[must_use]
    pub fn eventually(mut self, what: &'static str) -> Self {
        self.control = Control::Eventually(what);
        self
    }

    #[must_use]
    pub fn no_control(mut self, why: &'static str) -> Self {
        self.control = Control::None(why);
        self
    }
}

/// Fails the check unless it holds, with the evidence.
pub fn claim(holds: bool, evidence: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Broken(evidence()).into()) }
}
