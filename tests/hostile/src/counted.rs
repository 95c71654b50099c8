//! An engine that counts what is taken from it: how a check sees what somebody in between keeps.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use atoll_engine::{
    Command, Engine, Event, Events, Files, Isolation, Offsets, Ports, Probe, Process, ProcessId,
    Result, Sandbox, SandboxId, Spec, TerminalSize, Usage,
};
use bytes::Bytes;
use futures_util::StreamExt as _;

/// What was taken through each call of `attach`, in their order.
#[derive(Debug, Clone, Default)]
pub struct Taken(Arc<Mutex<Vec<Arc<AtomicU64>>>>);

impl Taken {
    fn reader(&self) -> Arc<AtomicU64> {
        let counter = Arc::new(AtomicU64::new(0));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counter));
        counter
    }

    /// Bytes each reader has taken so far.
    pub fn bytes(&self) -> Vec<u64> {
        let readers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        readers.iter().map(|reader| reader.load(Ordering::SeqCst)).collect()
    }
}

/// An engine, counted.
#[derive(Debug)]
pub struct Counted {
    pub inner: Arc<dyn Engine>,
    pub taken: Taken,
}

/// One of its sandboxes.
#[derive(Debug)]
pub struct CountedSandbox {
    pub inner: Arc<dyn Sandbox>,
    pub taken: Taken,
}

impl Counted {
    fn counted(&self, inner: Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
        Arc::new(CountedSandbox { inner, taken: self.taken.clone() })
    }
}

#[async_trait]
impl Engine for Counted {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn isolation(&self) -> Isolation {
        self.inner.isolation()
    }

    async fn probe(&self) -> Result<Probe> {
        self.inner.probe().await
    }

    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        Ok(self.counted(self.inner.create(id, spec).await?))
    }

    async fn attach(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>> {
        Ok(self.inner.attach(id).await?.map(|found| self.counted(found)))
    }

    async fn list(&self) -> Result<Vec<SandboxId>> {
        self.inner.list().await
    }

    async fn destroy(&self, id: &SandboxId) -> Result<()> {
        self.inner.destroy(id).await
    }
}

#[async_trait]
impl Sandbox for CountedSandbox {
    fn id(&self) -> &SandboxId {
        self.inner.id()
    }

    async fn start(&self, command: Command) -> Result<ProcessId> {
        self.inner.start(command).await
    }

    async fn attach(&self, process: ProcessId, from: Offsets) -> Result<Events> {
        let taken = self.taken.reader();
        let events = self.inner.attach(process, from).await?;
        let counted = events.inspect(move |event| {
            if let Ok(Event::Output { data, .. }) = event {
                taken.fetch_add(data.len() as u64, Ordering::SeqCst);
            }
        });
        Ok(counted.boxed())
    }

    async fn write_stdin(&self, process: ProcessId, data: Bytes) -> Result<()> {
        self.inner.write_stdin(process, data).await
    }

    async fn close_stdin(&self, process: ProcessId) -> Result<()> {
        self.inner.close_stdin(process).await
    }

    async fn resize(&self, process: ProcessId, size: TerminalSize) -> Result<()> {
        self.inner.resize(process, size).await
    }

    async fn signal(&self, process: ProcessId, signal: i32) -> Result<()> {
        self.inner.signal(process, signal).await
    }

    async fn kill(&self, process: ProcessId) -> Result<()> {
        self.inner.kill(process).await
    }

    async fn processes(&self) -> Result<Vec<Process>> {
        self.inner.processes().await
    }

    fn files(&self) -> &dyn Files {
        self.inner.files()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        self.inner.ports()
    }

    async fn usage(&self) -> Result<Usage> {
        self.inner.usage().await
    }

    async fn ended(&self) {
        self.inner.ended().await;
    }

    async fn destroy(&self) -> Result<()> {
        self.inner.destroy().await
    }
}
