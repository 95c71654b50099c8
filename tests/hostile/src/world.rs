//! What all checks share: the engine under test, the host's secrets, the witness, the probe.

use std::{
    fmt, fs,
    future::Future,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use atoll_engine::{Engine, Mount, SandboxId};
use rustix::fs::StatVfsMountFlags;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub use crate::subject::Weakness;
use crate::{
    bare::Bare, canary::Canary, census::Traces, stage::Stage, subject::Subject, witness::Witness,
};

/// Everything that outlives one check.
pub struct World {
    pub canary: Arc<Canary>,
    pub subject: Arc<dyn Subject>,
    runtime: Runtime,
    probe: TempDir,
    witness: Mutex<Option<Arc<Witness>>>,
    heavy: Mutex<()>,
    made: AtomicU64,
    notes: Mutex<Vec<String>>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("subject", &self.subject).finish_non_exhaustive()
    }
}

impl World {
    /// Makes the world and its witness.
    pub fn new(subject: Arc<dyn Subject>, variable: String) -> Result<Arc<Self>> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let world = Arc::new(Self {
            canary: Arc::new(Canary::new(variable)?),
            subject,
            runtime,
            probe: probe_directory()?,
            witness: Mutex::default(),
            heavy: Mutex::default(),
            made: AtomicU64::new(0),
            notes: Mutex::default(),
        });
        let stage = Stage::new(Arc::clone(&world), false)?;
        let witness = world.block_on(async {
            let ground = stage.sandbox(stage.usual()).await.context("the witness")?;
            Witness::new(ground).await
        })?;
        *world.witness.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(witness));
        Ok(world)
    }

    /// The engine, open in these ways.
    pub fn engine(&self, weaknesses: &[Weakness]) -> Result<Arc<dyn Engine>> {
        self.subject.engine(self.subject.directory(), weaknesses)
    }

    /// Other secrets in other files, for a control; the variable is the same.
    pub(crate) fn decoy(&self) -> Result<Arc<Canary>> {
        Ok(Arc::new(Canary::new(self.canary.variable.clone())?))
    }

    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Waits until no other heavy check runs.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.heavy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers something to be told at the end of the run.
    pub fn note(&self, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An id that no other run uses.
    pub fn new_id(&self) -> Result<SandboxId> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let text = format!("hostile{}n{number}", std::process::id());
        SandboxId::try_from(text).map_err(|error| anyhow::anyhow!("{error}"))
    }

    pub fn probe_mount(&self) -> Mount {
        crate::stage::shown(self.probe.path().to_owned(), "/probe", false)
    }

    /// The host's directory that is shown inside as `/probe`.
    pub fn probe_directory(&self) -> &Path {
        self.probe.path()
    }

    pub fn state_directory(&self) -> &Path {
        self.subject.directory()
    }

    pub fn bare(&self) -> Bare {
        Bare { program: self.probe.path().join("atoll-probe") }
    }

    pub fn traces(&self, id: &SandboxId) -> Traces {
        Traces::of(&self.subject, id)
    }

    /// The host's number of a sandbox's first process.
    pub fn first_process(&self, id: &SandboxId) -> Option<u64> {
        self.subject.first_process(id)
    }

    pub fn witness(&self) -> Option<Arc<Witness>> {
        self.witness.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub async fn witness_unharmed(&self) -> Result<()> {
        match self.witness() {
            Some(witness) => witness.unharmed().await,
            None => Ok(()),
        }
    }

    /// Ends the witness and all else, and says what is left.
    pub fn end(self: Arc<Self>) -> Result<()> {
        let engine = self.engine(&[])?;
        let witness = self.witness.lock().unwrap_or_else(PoisonError::into_inner).take();
        let result = self.block_on(async {
            if let Some(witness) = witness {
                let id = witness.ground.sandbox.id().clone();
                let traces = self.traces(&id);
                engine.destroy(&id).await.context("destroy the witness")?;
                traces.gone().await?;
            }
            let left = engine.list().await?;
            anyhow::ensure!(left.is_empty(), "the engine still lists {left:?}");
            self.canary.unchanged()
        });
        drop(engine);
        let world = Arc::into_inner(self).context("somebody still holds the world")?;
        world.runtime.shutdown_timeout(Duration::from_secs(10));
        result
    }
}

/// A directory with the probe, a file to be overwritten, and copies of the probe that claim
/// somebody else's rights.
fn probe_directory() -> Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("atoll-probe-").tempdir_in(plain_directory())?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
    for (name, mode) in [("atoll-probe", 0o755), ("as-owner", 0o6755)] {
        let path = directory.path().join(name);
        fs::write(&path, PROBE)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    fs::write(directory.path().join("shared"), SHARED)?;
    Ok(directory)
}

/// A directory for files that anybody can reach and whose mount takes away no rights.
fn plain_directory() -> PathBuf {
    let limited = StatVfsMountFlags::NOSUID | StatVfsMountFlags::NOEXEC;
    let plain = |path: &PathBuf| {
        rustix::fs::statvfs(path).is_ok_and(|found| !found.f_flag.intersects(limited))
    };
    let places = [std::env::temp_dir(), PathBuf::from("/var/tmp"), PathBuf::from("/tmp")];
    places.into_iter().find(plain).unwrap_or_else(std::env::temp_dir)
}

/// The probe itself.
pub(crate) const PROBE: &[u8] = include_bytes!(env!("ATOLL_PROBE"));

/// What the read-only file of the host holds.
pub const SHARED: &str = "the host's own words\n";
