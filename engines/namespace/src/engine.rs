//! Makes, finds and ends sandboxes.

use std::{
    fs, io,
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
};

use async_trait::async_trait;
use atoll_agent_client::{AgentSandbox, agent_memfd, cgroup::Host, private::Private};
use atoll_engine::{
    Engine, Error, ErrorKind, Isolation, Limits, Probe, Result, Sandbox, SandboxId, Spec,
};
use atoll_launcher::Weakness;
use tokio::sync::oneshot;

use crate::{
    boot,
    config::Config,
    launch::launch,
    limits::{self, Bounds, Means},
    maker::Maker,
    place::Place,
    plan, probe,
    process::Identity,
    record::Record,
    sandbox::{Watch, clear},
};

/// Sandboxes of this host's namespaces. Cheap to clone.
#[derive(Debug, Clone)]
pub struct NamespaceEngine {
    config: Arc<Config>,
    groups: Arc<Host>,
    maker: Maker,
}

impl NamespaceEngine {
    pub fn new(config: Config) -> Self {
        // A host that cannot tell its mounts has no controllers: limits are then refused.
        let groups = Host::find().unwrap_or_else(|_| Host::v1([]));
        let maker = Maker::find(&config);
        Self { config: Arc::new(config), groups: Arc::new(groups), maker }
    }

    fn means(&self) -> Means<'_> {
        Means { groups: &self.groups, counted: self.maker.counts_processes() }
    }

    /// The place of a sandbox, which may have been made by a daemon started elsewhere.
    fn place(&self, id: &SandboxId, limited: bool) -> Place {
        let record = Record::read(&self.config.state_dir.join(id.as_str()));
        match record.and_then(|record| record.groups) {
            Some(groups) => Place::new(&self.config, &Host::v2(groups), id, limited),
            None => Place::new(&self.config, &self.groups, id, limited),
        }
    }

    async fn make(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        let mut bounds = limits::bounds(&spec.limits, self.means())?;
        self.weaken(&mut bounds);
        let place = Arc::new(self.place(id, bounds.guests.cpus.is_some()));
        place.take().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Error::new(ErrorKind::AlreadyExists, "there is a sandbox of that id")
            }
            _ => Error::internal("the sandbox's directory cannot be made").because(error),
        })?;
        // From here on whatever fails is undone.
        let made = self.fill(id, spec, bounds, &place).await;
        if let Err(error) = &made {
            tracing::debug!(%id, ?error, "the sandbox was not made");
            clear(place).await?;
        }
        made
    }

    async fn fill(
        &self,
        id: &SandboxId,
        spec: &Spec,
        bounds: Bounds,
        place: &Arc<Place>,
    ) -> Result<Arc<dyn Sandbox>> {
        let limits = spec.limits;
        let (config, spec, at) = (Arc::clone(&self.config), spec.clone(), Arc::clone(place));
        let (maker, groups) = (self.maker.clone(), Arc::clone(&self.groups));
        let started = tokio::task::spawn_blocking(move || {
            start(&config, &maker, &groups, &spec, &bounds, &at)
        })
        .await;
        let init = started.map_err(|error| Error::internal("a thread failed").because(error))??;
        open(id, place, limits, init).await
    }

    fn weaken(&self, bounds: &mut Bounds) {
        for weakness in &self.config.weaknesses {
            match weakness {
                Weakness::Memory => bounds.guests.memory = None,
                Weakness::Pids => bounds.guests.pids = None,
                Weakness::Cpus => bounds.guests.cpus = None,
                _ => {}
            }
        }
    }
}

#[async_trait]
impl Engine for NamespaceEngine {
    fn name(&self) -> &'static str {
        "namespace"
    }

    fn isolation(&self) -> Isolation {
        Isolation::Kernel
    }

    async fn probe(&self) -> Result<Probe> {
        let (maker, config) = (self.maker.clone(), Arc::clone(&self.config));
        // Making one blocks.
        tokio::task::spawn_blocking(move || maker.check(&config))
            .await
            .map_err(|error| Error::internal("a thread failed").because(error))??;
        Ok(probe::probe(self.means(), &self.maker))
    }

    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        let (engine, id, spec) = (self.clone(), id.clone(), spec.clone());
        let (answer, made) = oneshot::channel();
        tokio::spawn(async move {
            let made = engine.make(&id, &spec).await;
            if let Err(Ok(sandbox)) = answer.send(made) {
                // Nobody waits for it any more.
                if let Err(error) = sandbox.destroy().await {
                    tracing::warn!(%id, ?error, "an unwanted sandbox stays");
                }
            }
        });
        made.await.map_err(|error| Error::internal("the runtime is going down").because(error))?
    }

    async fn attach(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>> {
        let place = Arc::new(self.place(id, true));
        let Some(record) = Record::read(&place.directory) else { return Ok(None) };
        let Some(init) = record.init.and_then(|init| init.open()) else { return Ok(None) };
        match open(id, &place, record.limits, init).await {
            Ok(sandbox) => Ok(Some(sandbox)),
            Err(error) if error.kind() == ErrorKind::Lost => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list(&self) -> Result<Vec<SandboxId>> {
        let entries = match fs::read_dir(&self.config.state_dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(unlisted)?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(unlisted)?.file_name();
            ids.extend(name.to_str().and_then(|name| name.parse().ok()));
        }
        ids.sort();
        Ok(ids)
    }

    async fn destroy(&self, id: &SandboxId) -> Result<()> {
        clear(Arc::new(self.place(id, true))).await
    }
}

fn unlisted(error: io::Error) -> Error {
    Error::internal("the sandboxes cannot be listed").because(error)
}

/// Makes everything up to a running first process. Blocks.
fn start(
    config: &Config,
    maker: &Maker,
    groups: &Host,
    spec: &Spec,
    bounds: &Bounds,
    place: &Place,
) -> Result<OwnedFd> {
    let internal =
        |what: &'static str| move |error: io::Error| Error::internal(what).because(error);
    let mut record = Record {
        owner: Identity::own(),
        limits: spec.limits,
        init: None,
        groups: groups.place().map(Into::into),
    };
    record.write(&place.directory).map_err(internal("the record cannot be written"))?;

    maker.check(config)?;
    let lease = maker.lease(config, plan::shows_more(spec)).map_err(|error| {
        Error::new(ErrorKind::Exhausted, "no ids are left for a sandbox").because(error)
    })?;
    let private = Private::find(&config.state_dir, config.private.clone())
        .map_err(internal("the engine's own place is not there"))?;
    let mut plan = plan::plan(spec, bounds, lease.ids, &private, &config.weaknesses)?;

    let limited = internal("the control groups cannot be made");
    groups.settle().map_err(limited)?;
    place.agent.create(&bounds.agent).map_err(limited)?;
    place.guests.create(&bounds.guests).map_err(limited)?;
    let own = place.agent.doors().map_err(limited)?;
    let doors = place.guests.doors().map_err(limited)?;
    plan.own_doors = own.len();

    let listener = place.listen().map_err(internal("the socket cannot be made"))?;
    let boot = boot::boot(spec, bounds, &plan, doors.len(), &config.weaknesses);
    let boot = boot::written(&boot).map_err(internal("no memory file can be made"))?;
    let program = agent_memfd().map_err(internal("no memory file can be made"))?;

    let fixed = [program.as_fd(), boot.as_fd(), listener.as_fd(), lease.file.as_fd()];
    let descriptors: Vec<_> =
        fixed.into_iter().chain(doors.iter().chain(&own).map(|door| door.as_fd())).collect();
    let (pid, init) = launch(&plan, &descriptors)?;

    record.init = Identity::of(pid);
    record.write(&place.directory).map_err(internal("the record cannot be written"))?;
    Ok(init)
}

/// A sandbox whose agent has answered.
async fn open(
    id: &SandboxId,
    place: &Arc<Place>,
    limits: Limits,
    init: OwnedFd,
) -> Result<Arc<dyn Sandbox>> {
    let watch = Watch::new(Arc::clone(place), init)
        .map_err(|error| Error::internal("the sandbox cannot be watched").because(error))?;
    Ok(AgentSandbox::connect(id.clone(), Arc::new(watch), limits).await?)
}
