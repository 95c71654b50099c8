//! Where one check happens, sound or weak, and what is looked at when it is over.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use anyhow::{Context as _, Result};
use atoll_engine::{Engine, Files, Limits, Mount, SandboxId, Spec};
use atoll_types::quantity::Size;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    bare::Bare,
    canary::Canary,
    census::Traces,
    ground::Ground,
    naive::NaiveFiles,
    world::{Weakness, World},
};

/// One run of one check.
#[derive(Debug)]
pub struct Stage {
    pub world: Arc<World>,
    /// This is the control: what the check stands on is weaker, and it must fail.
    pub weak: bool,
    /// The host's secrets; a control has its own, since it may get at them.
    pub canary: Arc<Canary>,
    made: Mutex<Vec<Made>>,
}

#[derive(Debug, Clone)]
struct Made {
    engine: Arc<dyn Engine>,
    id: SandboxId,
    traces: Traces,
}

/// Inside a sandbox, or, for a control, on the host as nobody.
#[derive(Debug)]
pub enum Place {
    Inside(Ground),
    Bare(Bare),
}

/// A place with files: a sandbox's, or, for a control, those of a service that trusts paths.
#[derive(Debug)]
pub enum Yard {
    Inside(Ground),
    Naive(NaiveFiles, TempDir),
}

impl Stage {
    pub fn new(world: Arc<World>, weak: bool) -> Result<Self> {
        let canary = if weak { world.decoy()? } else { Arc::clone(&world.canary) };
        Ok(Self { world, weak, canary, made: Mutex::default() })
    }

    /// A spec that shows the probe inside, with these limits.
    pub fn spec(&self, limits: Limits) -> Spec {
        Spec { limits, mounts: vec![self.world.probe_mount()], ..Spec::default() }
    }

    /// A spec with the limits every check has that needs none in particular.
    pub fn usual(&self) -> Spec {
        self.spec(usual())
    }

    /// These limits, or, for the control, `others`.
    pub fn limits(&self, limits: Limits, others: Limits) -> Limits {
        if self.weak { others } else { limits }
    }

    /// A sandbox as it should be, also in a control.
    pub async fn sandbox(&self, spec: Spec) -> Result<Ground> {
        self.create(spec, &[]).await
    }

    /// A sandbox that, in a control, has these weaknesses.
    pub async fn weakened(&self, spec: Spec, weaknesses: &[Weakness]) -> Result<Ground> {
        self.create(spec, if self.weak { weaknesses } else { &[] }).await
    }

    async fn create(&self, spec: Spec, weaknesses: &[Weakness]) -> Result<Ground> {
        let engine = self.world.engine(weaknesses)?;
        let id = self.world.new_id()?;
        let spec = self.world.subject.complete(spec);
        let sandbox = engine.create(&id, &spec).await.map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            anyhow::anyhow!("create: {error} ({cause:?})")
        })?;
        let traces = self.world.traces(&id);
        let made = Made { engine, id, traces };
        self.made.lock().map_err(|_| anyhow::anyhow!("poisoned"))?.push(made);
        Ok(Ground { sandbox, world: Arc::clone(&self.world), weak: self.weak })
    }

    /// The engine's second view of a sandbox, as a restarted daemon would have it.
    pub async fn attach_again(&self, ground: &Ground, weaknesses: &[Weakness]) -> Result<Ground> {
        let engine = self.world.engine(if self.weak { weaknesses } else { &[] })?;
        let sandbox = engine.attach(ground.sandbox.id()).await?.context("it can be found again")?;
        Ok(Ground { sandbox, world: Arc::clone(&self.world), weak: self.weak })
    }

    /// A sandbox, or nothing around the probe at all.
    pub async fn place(&self, spec: Spec) -> Result<Place> {
        if self.weak {
            return Ok(Place::Bare(self.world.bare()));
        }
        Ok(Place::Inside(self.sandbox(spec).await?))
    }

    /// A sandbox's files, or those of a service that trusts paths.
    pub async fn yard(&self, spec: Spec) -> Result<Yard> {
        if self.weak {
            let directory = tempfile::Builder::new().prefix("atoll-naive-").tempdir()?;
            let files = NaiveFiles { root: directory.path().to_owned() };
            return Ok(Yard::Naive(files, directory));
        }
        Ok(Yard::Inside(self.sandbox(spec).await?))
    }

    /// A sandbox without the system call filter, to see what the kernel answers by itself.
    pub async fn unfiltered(&self) -> Result<Ground> {
        self.create(self.usual(), &[Weakness::Seccomp]).await
    }

    /// Ends everything the check made and looks at what must be untouched (I1, I3, I4).
    pub(crate) async fn close(&self) -> Result<()> {
        let made = self.made.lock().map(|mut made| std::mem::take(&mut *made)).unwrap_or_default();
        let mut result = Ok(());
        for made in made {
            let destroyed = made.engine.destroy(&made.id).await.context("destroy");
            let gone = made.traces.gone().await;
            result = result.and(destroyed).and(gone);
        }
        result.and(self.world.canary.unchanged()).and(self.world.witness_unharmed().await)
    }
}

/// Small limits, all of them.
pub fn usual() -> Limits {
    Limits {
        memory: Some(Size(64 << 20)),
        pids: Some(40),
        open_files: Some(256),
        disk: Some(Size(16 << 20)),
        ..Limits::default()
    }
}

impl Place {
    pub async fn probe<S: AsRef<str>>(&self, words: &[S]) -> Result<Value> {
        match self {
            Self::Inside(ground) => ground.probe(words).await,
            Self::Bare(bare) => bare.probe(words).await,
        }
    }
}

impl Yard {
    pub fn files(&self) -> &dyn Files {
        match self {
            Self::Inside(ground) => ground.sandbox.files(),
            Self::Naive(files, _) => files,
        }
    }

    /// Lets go whoever waits in opening this pipe of a naive place.
    pub fn release(&self, pipe: &str) {
        if let Self::Naive(files, _) = self {
            // Opening both ends at once never waits, and wakes those who opened one.
            std::fs::OpenOptions::new().read(true).write(true).open(files.root.join(pipe)).ok();
        }
    }

    /// Runs a line in the place's own shell, in its home directory.
    pub async fn shell(&self, line: &str) -> Result<()> {
        match self {
            Self::Inside(ground) => ground.shell(line).await.map(|_| ()),
            Self::Naive(_, directory) => {
                let status = tokio::process::Command::new("/bin/sh")
                    .args(["-c", line])
                    .current_dir(directory.path())
                    .status()
                    .await?;
                anyhow::ensure!(status.success(), "`{line}` failed");
                Ok(())
            }
        }
    }
}

/// A directory of the host shown inside.
pub fn shown(host: PathBuf, guest: &str, writable: bool) -> Mount {
    Mount { host, guest: guest.into(), writable }
}
