//! The service itself: what it holds, how it opens and how it stops.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use atoll_engine::Probe;
use atoll_store::Store;
use atoll_types::{
    engine::EngineInfo,
    environment::EnvironmentInfo,
    id::{SandboxId, SessionId},
    session::End,
};
use tokio::sync::Semaphore;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    Engines, MountPolicy, Reconciled, Result, Settings, environments::Environments, live::Live,
    metrics,
};

/// How long [`Service::shutdown`] waits for what is under way.
const DRAIN: Duration = Duration::from_secs(30);

type Undone = HashMap<SandboxId, (String, Option<SessionId>)>;

/// Sessions and executions. Cheap to clone.
///
/// What changes the world runs apart from the caller's future: a caller that goes away cannot
/// leave a thing half made. Dropping the last handle without [`shutdown`](Self::shutdown) stops
/// the background work as a crash would, and leaves every sandbox to the next `open`.
#[derive(Debug, Clone)]
pub struct Service {
    pub(crate) inner: Arc<Inner>,
    pub(crate) mounts: MountPolicy,
    /// Stops the background work with the last handle that is not part of it.
    _alive: Option<Arc<DropGuard>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub store: Store,
    pub engines: Engines,
    pub environments: Environments,
    pub settings: Settings,
    /// One permit for each sandbox there may be.
    pub places: Arc<Semaphore>,
    pub tasks: TaskTracker,
    /// The server stops: what can wait for the next one is let go.
    pub stop: CancellationToken,
    live: Mutex<HashMap<SessionId, Arc<Live>>>,
    /// Sandboxes that could not be destroyed yet: of which engine and which session.
    undone: Mutex<Undone>,
    /// Sessions whose engine did not answer when they were to be adopted.
    unreachable: Mutex<HashSet<SessionId>>,
    /// What engines said of themselves when they worked.
    probes: Mutex<HashMap<&'static str, Arc<Probe>>>,
    reconciled: std::sync::OnceLock<Reconciled>,
}

impl Service {
    /// Opens a service over its records: adopts the sessions that live, ends those that do not,
    /// and removes sandboxes nobody knows.
    pub async fn open(store: Store, engines: Engines, settings: Settings) -> Result<Self> {
        let environments =
            Environments::load(settings.environments.as_deref(), settings.default_limits)?;
        let stop = CancellationToken::new();
        let inner = Arc::new(Inner {
            store,
            engines,
            environments,
            places: Arc::new(Semaphore::new(settings.max_sessions)),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
            live: Mutex::default(),
            undone: Mutex::default(),
            unreachable: Mutex::default(),
            probes: Mutex::default(),
            reconciled: std::sync::OnceLock::new(),
            settings,
        });
        let mounts = MountPolicy::Listed(inner.settings.mounts.clone());
        let service = Self { inner, mounts, _alive: Some(Arc::new(stop.drop_guard())) };
        let report = service.reconcile().await?;
        report.log();
        // Set once, here: `open` is the only maker of an `Inner`.
        let _ = service.inner.reconciled.set(report);
        let reaper = service.background();
        service.inner.tasks.spawn(async move { reaper.reap().await });
        Ok(service)
    }

    /// The same service for callers with other rights to mount directories.
    #[must_use]
    pub fn with_mounts(&self, mounts: MountPolicy) -> Self {
        Self { mounts, ..self.clone() }
    }

    /// What `open` found and did.
    pub fn reconciled(&self) -> Reconciled {
        self.inner.reconciled.get().cloned().unwrap_or_default()
    }

    /// Stops the background work and closes the store.
    ///
    /// Sessions and what runs in them go on, for the next `open` to adopt, unless the operator
    /// wants them ended. One-shot sandboxes are destroyed. Returns when that is done, or after
    /// half a minute.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        if self.inner.settings.end_sessions_on_shutdown {
            for live in self.all_live() {
                if let Err(error) = self.end_session(&live.id, End::ServerStopped).await {
                    tracing::warn!(session = %live.id, %error, "session not ended at shutdown");
                }
            }
        }
        self.inner.tasks.close();
        if tokio::time::timeout(DRAIN, self.inner.tasks.wait()).await.is_err() {
            tracing::warn!(left = self.inner.tasks.len(), "work not finished at shutdown");
        }
        self.inner.store.close().await;
    }

    /// Sessions whose sandboxes this process has in hand.
    pub fn live_sessions(&self) -> usize {
        self.live_map().len()
    }

    /// Asks every engine whether it works here, and how well.
    pub async fn engines(&self) -> Result<Vec<EngineInfo>> {
        Ok(self.inner.engines.describe().await)
    }

    /// What sandboxes can be made of.
    #[expect(clippy::unused_async, reason = "all methods are called alike")]
    pub async fn environments(&self) -> Result<Vec<EnvironmentInfo>> {
        Ok(self.inner.environments.describe())
    }

    /// A handle for background work, which does not keep the service alive.
    pub(crate) fn background(&self) -> Self {
        Self { _alive: None, ..self.clone() }
    }

    /// What an engine says of itself, asked once it works.
    pub(crate) async fn probe(&self, engine: &dyn atoll_engine::Engine) -> Result<Arc<Probe>> {
        let known = lock(&self.inner.probes).get(engine.name()).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let probe = Arc::new(engine.probe().await?);
        lock(&self.inner.probes).insert(engine.name(), Arc::clone(&probe));
        Ok(probe)
    }

    pub(crate) fn find_live(&self, id: &SessionId) -> Option<Arc<Live>> {
        self.live_map().get(id).cloned()
    }

    pub(crate) fn all_live(&self) -> Vec<Arc<Live>> {
        self.live_map().values().cloned().collect()
    }

    pub(crate) fn insert_live(&self, live: Arc<Live>) {
        let mut map = self.live_map();
        map.insert(live.id.clone(), live);
        metrics::sessions_live(map.len());
    }

    pub(crate) fn remove_live(&self, id: &SessionId) {
        let mut map = self.live_map();
        map.remove(id);
        metrics::sessions_live(map.len());
    }

    pub(crate) fn undone(&self) -> MutexGuard<'_, Undone> {
        lock(&self.inner.undone)
    }

    pub(crate) fn unreachable(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        lock(&self.inner.unreachable)
    }

    fn live_map(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Live>>> {
        lock(&self.inner.live)
    }
}

/// The maps here are whole after every statement, so a panic elsewhere leaves nothing to distrust.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
