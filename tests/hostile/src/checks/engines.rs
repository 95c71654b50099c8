//! P, and F02: which engine a request gets, and which directories; nothing weaker in its place.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Result;
use async_trait::async_trait;
use atoll_engine::{Engine, Error, ErrorKind, Isolation, Probe, Sandbox, SandboxId, Spec};
use atoll_local::LocalEngine;
use atoll_service::{AllowedMount, Code, Engines, Service, Settings, Store};
use atoll_types::session::{CreateSession, MountMode, MountRequest};

use crate::{
    check::{Check, check, claim},
    stage::Stage,
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("P01", "an_engine_without_isolation_refuses_what_is_not_trusted", not_trusted)
            .against("a request that is trusted"),
        check("P01", "the_service_refuses_what_is_not_trusted", service_not_trusted)
            .against("a request and an operator that trust"),
        check("P10", "an_engine_that_is_not_there_is_an_error", not_there)
            .against("a request that names the weaker engine"),
        check("P10", "an_engine_that_does_not_work_is_an_error", not_working)
            .against("a request that names the weaker engine"),
        check("F02", "a_directory_whose_name_only_begins_alike_is_not_allowed", begins_alike)
            .against("an operator who allows it"),
    ]
}

/// An engine that makes nothing and counts who asked it to.
#[derive(Debug)]
struct Recorder {
    name: &'static str,
    isolation: Isolation,
    works: bool,
    asked: AtomicUsize,
}

impl Recorder {
    fn new(name: &'static str, isolation: Isolation, works: bool) -> Arc<Self> {
        Arc::new(Self { name, isolation, works, asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn missing(&self) -> Error {
        Error::unavailable(format!("{} does not work here", self.name))
    }
}

#[async_trait]
impl Engine for Recorder {
    fn name(&self) -> &'static str {
        self.name
    }

    fn isolation(&self) -> Isolation {
        self.isolation
    }

    async fn probe(&self) -> atoll_engine::Result<Probe> {
        if self.works { Ok(Probe::default()) } else { Err(self.missing()) }
    }

    async fn create(&self, _: &SandboxId, _: &Spec) -> atoll_engine::Result<Arc<dyn Sandbox>> {
        if self.works {
            self.asked.fetch_add(1, Ordering::SeqCst);
        }
        Err(self.missing())
    }

    async fn attach(&self, _: &SandboxId) -> atoll_engine::Result<Option<Arc<dyn Sandbox>>> {
        Ok(None)
    }

    async fn list(&self) -> atoll_engine::Result<Vec<SandboxId>> {
        Ok(Vec::new())
    }

    async fn destroy(&self, _: &SandboxId) -> atoll_engine::Result<()> {
        Ok(())
    }
}

/// Asks a service with these engines for a session, and returns the code of its answer.
async fn ask(engines: Engines, settings: Settings, request: CreateSession) -> Result<Option<Code>> {
    let service = Service::open(Store::in_memory().await?, engines, settings).await?;
    let answer = service.create_session(request).await;
    service.shutdown().await;
    Ok(answer.err().map(|error| error.code))
}

/// The control's request: it asks for the weaker engine by name and says that it may.
fn weaker() -> CreateSession {
    CreateSession { engine: Some("local".to_owned()), trusted: true, ..CreateSession::default() }
}

async fn not_trusted(stage: Arc<Stage>) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let engine = LocalEngine::new(atoll_local::Config::new(directory.path()));
    claim(engine.isolation() == Isolation::None, || format!("{:?}", engine.isolation()))?;
    let id = stage.world.new_id()?;
    let spec =
        Spec { trusted: stage.weak, network: atoll_engine::Network::Host, ..Spec::default() };

    let answer = engine.create(&id, &spec).await;

    engine.destroy(&id).await?;
    let kind = answer.as_ref().map_err(Error::kind).map(|_| ());
    claim(kind == Err(ErrorKind::Denied), || format!("not refused: {answer:?}"))
}

async fn service_not_trusted(stage: Arc<Stage>) -> Result<()> {
    let local = Recorder::new("local", Isolation::None, true);
    let engines = Engines::new().with(local.clone());
    let settings = Settings { allow_trusted: stage.weak, ..Settings::default() };
    let request = CreateSession { trusted: stage.weak, ..weaker() };

    let code = ask(engines, settings, request).await?;

    let refused = code == Some(Code::EngineNotIsolating) && local.asked() == 0;
    claim(refused, || format!("{code:?}, and the engine was asked {} times", local.asked()))
}

/// The operator's engine is not among those the server has.
async fn not_there(stage: Arc<Stage>) -> Result<()> {
    let names = [None, Some("namespace"), Some("docker"), Some("gvisor"), Some("Local"), Some("")];
    for name in names {
        let local = Recorder::new("local", Isolation::None, true);
        let engines = Engines::new().with(local.clone());
        let request = CreateSession { engine: name.map(str::to_owned), trusted: true, ..weaker() };
        let request = if stage.weak { weaker() } else { request };
        let settings = Settings { allow_trusted: true, ..Settings::default() };

        let code = ask(engines, settings, request).await?;

        let error = matches!(code, Some(Code::EngineUnavailable | Code::InvalidRequest));
        let right = error && local.asked() == 0;
        claim(right, || format!("{name:?}: {code:?}, and another engine was asked"))?;
    }
    Ok(())
}

/// The engine is there and does not work on this host.
async fn not_working(stage: Arc<Stage>) -> Result<()> {
    let local = Recorder::new("local", Isolation::None, true);
    let broken = Recorder::new("namespace", Isolation::Kernel, false);
    let engines = Engines::new().with(broken).with(local.clone());
    let request = if stage.weak {
        weaker()
    } else {
        CreateSession { trusted: true, ..CreateSession::default() }
    };
    let settings = Settings { allow_trusted: true, ..Settings::default() };

    let code = ask(engines, settings, request).await?;

    let right = code == Some(Code::EngineUnavailable) && local.asked() == 0;
    claim(right, || format!("{code:?}, and another engine was asked {} times", local.asked()))
}

async fn begins_alike(stage: Arc<Stage>) -> Result<()> {
    let place = tempfile::tempdir()?;
    let (one, longer) = (place.path().join("data"), place.path().join("data-evil"));
    std::fs::create_dir(&one)?;
    std::fs::create_dir(&longer)?;
    let allowed = |path: &Path| AllowedMount { host: path.to_owned(), writable: true };
    let mounts = if stage.weak { vec![allowed(&longer)] } else { vec![allowed(&one)] };
    let engine = Recorder::new("namespace", Isolation::Kernel, true);
    let request = CreateSession {
        mounts: vec![MountRequest {
            host: longer.display().to_string(),
            guest: "/data".to_owned(),
            mode: MountMode::Ro,
        }],
        ..CreateSession::default()
    };

    let settings = Settings { mounts, ..Settings::default() };
    let code = ask(Engines::new().with(engine.clone()), settings, request).await?;

    let refused = code == Some(Code::Denied) && engine.asked() == 0;
    claim(refused, || format!("{code:?}, and the engine was asked {} times", engine.asked()))
}
