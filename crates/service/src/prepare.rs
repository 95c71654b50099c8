//! Getting what an environment's sandboxes need, before the first of them is made.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use atoll_engine::{Progress, Root};
use futures_util::Stream;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::{Engines, Result, Service};

/// Steps on their way to whoever looks; more are left out.
const STEPS: usize = 256;

/// Steps, and at the end whether it worked. Dropping it gives it up.
#[derive(Debug)]
pub struct Preparation {
    steps: mpsc::Receiver<Progress>,
    work: AbortOnDropHandle<Result<()>>,
    over: bool,
}

/// What a [`Preparation`] tells.
#[derive(Debug)]
pub enum Prepared {
    Step(Progress),
    /// The last word.
    Done,
}

impl Service {
    /// Gets what sandboxes of an environment need on an engine: an image, where they start from
    /// one. An environment is named as for a session.
    pub async fn prepare(&self, environment: &str, engine: Option<&str>) -> Result<Preparation> {
        let (environment, engine) = self.choose(Some(environment), engine)?;
        let root: Root = environment.root(Engines::canonical(engine.name()))?;
        self.probe(engine.as_ref()).await?;
        let (sender, steps) = mpsc::channel(STEPS);
        let engine = Arc::clone(&engine);
        let work = tokio::spawn(async move {
            // One that nobody has read yet is not worth waiting for.
            let report = |step| drop(sender.try_send(step));
            Ok(engine.prepare(&root, &report).await?)
        });
        Ok(Preparation { steps, work: AbortOnDropHandle::new(work), over: false })
    }
}

impl Stream for Preparation {
    type Item = Result<Prepared>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        match self.steps.poll_recv(context) {
            Poll::Ready(Some(step)) => return Poll::Ready(Some(Ok(Prepared::Step(step)))),
            Poll::Pending => return Poll::Pending,
            // The work has let go of its end, so it is over or about to be.
            Poll::Ready(None) => {}
        }
        Pin::new(&mut self.work).poll(context).map(|result| {
            self.over = true;
            let result = result.unwrap_or_else(|error| {
                Err(crate::Error::internal("preparing broke off").because(error))
            });
            Some(result.map(|()| Prepared::Done))
        })
    }
}
