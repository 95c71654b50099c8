//! A factory of sandboxes.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use atoll_types::{
    engine::{Fact, Grade, Isolation},
    id::SandboxId,
};

use crate::{Report, Result, Root, Sandbox, Spec};

/// A way of isolating code: a process, namespaces, a container, a remote service.
#[async_trait]
pub trait Engine: fmt::Debug + Send + Sync {
    /// The name written in requests and configuration, such as `namespace`.
    fn name(&self) -> &'static str;

    /// What separates a sandbox of this engine from its host.
    fn isolation(&self) -> Isolation;

    /// Says whether this host can run the engine, and how well each limit holds here.
    ///
    /// - Changes nothing on the host.
    /// - The error is [`Unavailable`](crate::ErrorKind::Unavailable), and its hint says what to
    ///   install or enable.
    async fn probe(&self) -> Result<Probe>;

    /// Makes a sandbox that is ready when this returns.
    ///
    /// - A failed call leaves nothing behind; so does a dropped one, in the background.
    /// - A second call with an id in use is [`AlreadyExists`](crate::ErrorKind::AlreadyExists).
    /// - A field of `spec` this engine cannot honour is
    ///   [`Unsupported`](crate::ErrorKind::Unsupported).
    /// - An engine without isolation refuses a `spec` that is not trusted
    ///   ([`Denied`](crate::ErrorKind::Denied)).
    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>>;

    /// Gets what sandboxes of this root need and this host lacks: an image, for instance.
    ///
    /// - Without it, [`create`](Self::create) is [`NotFound`](crate::ErrorKind::NotFound).
    /// - Of what is here already: does nothing, or makes sure that it is as it should be.
    /// - Dropping the future gives it up.
    async fn prepare(&self, root: &Root, report: Report<'_>) -> Result<()> {
        let _ = (root, report);
        Ok(())
    }

    /// Finds a sandbox made earlier, perhaps by a daemon that has since died.
    ///
    /// - None if there is none, or only remains of one; [`destroy`](Self::destroy) removes those.
    /// - What runs in it goes on; its processes, their output and their ends are there.
    async fn attach(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>>;

    /// Names every sandbox of this Atoll on this host, and every remainder of one.
    async fn list(&self) -> Result<Vec<SandboxId>>;

    /// Ends a sandbox or removes what remains of it, known to this process or not.
    ///
    /// - Returns when nothing is left: no process, mount, control group or file.
    /// - Of a sandbox that is not there: does nothing, successfully.
    /// - Dropping the future does not stop the work.
    async fn destroy(&self, id: &SandboxId) -> Result<()>;
}

/// What a host gives an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    pub grades: Vec<Grade>,
    pub facts: Vec<Fact>,
}
