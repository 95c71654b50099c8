//! Makes, finds and ends sandboxes.

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use atoll_agent_client::{AgentSandbox, private::Private};
use atoll_engine::{
    Engine, Error, ErrorKind, Image, Isolation, Limits, Network, Probe, Report, Result, Root,
    Sandbox, SandboxId, Spec,
};
use bollard::{
    models::ContainerInspectResponse,
    query_parameters::{CreateContainerOptions, InspectContainerOptions, ListContainersOptions},
};
use tokio::sync::oneshot;

use crate::{
    boot,
    config::{Config, Weakness},
    container::Plan,
    daemon::{Daemon, failed, status},
    image::{self, Facts},
    labels::{self, Instance},
    limits, mounts,
    place::Place,
    probe, pull,
    sandbox::{Site, Watch},
};

/// How long an agent may take to listen once its container runs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sandboxes of a Docker daemon. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DockerEngine {
    config: Arc<Config>,
    daemon: Arc<Daemon>,
}

impl DockerEngine {
    pub fn new(config: Config) -> Self {
        let daemon = Daemon::new(config.host.clone());
        Self { config: Arc::new(config), daemon: Arc::new(daemon) }
    }

    fn site(&self, instance: &Instance, id: &SandboxId) -> Site {
        Site {
            daemon: Arc::clone(&self.daemon),
            container: instance.container(id),
            place: Place::new(&self.config.state_dir, id),
            host_network: self.config.weak(Weakness::Network),
        }
    }

    /// The one this state directory belongs to; none before its first sandbox.
    fn instance(&self) -> Result<Option<Instance>> {
        Instance::read(&self.config.state_dir).map_err(unusable)
    }

    async fn make(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        let wanted = image(spec)?;
        let bounds = limits::bounds(&spec.limits, self.daemon.info().await?, &self.config)?;
        self.check_runtime(spec.runtime.as_deref()).await?;
        let facts = image::find(&self.daemon, wanted).await?;
        let instance = Instance::begin(&self.config.state_dir).map_err(unusable)?;
        let site = self.site(&instance, id);
        site.place.take().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Error::new(ErrorKind::AlreadyExists, "there is a sandbox of that id")
            }
            _ => unusable(error),
        })?;
        // From here on whatever fails is undone.
        let made = self.fill(id, spec, &bounds, &facts, &instance, &site).await;
        if let Err(error) = &made {
            tracing::debug!(%id, ?error, "the sandbox was not made");
            site.clear().await?;
        }
        made
    }

    async fn fill(
        &self,
        id: &SandboxId,
        spec: &Spec,
        bounds: &limits::Bounds,
        facts: &Facts,
        instance: &Instance,
        site: &Site,
    ) -> Result<Arc<dyn Sandbox>> {
        let shown = mounts::check(&spec.mounts, &self.private().await?, self.guest().await?)?;
        let boot = boot::boot(spec, bounds, facts, &self.config);
        site.place.furnish(&boot).map_err(unusable)?;
        let plan = Plan {
            config: &self.config,
            bounds,
            image: facts,
            shown: &shown,
            place: &site.place,
            runtime: spec.runtime.clone(),
            labels: instance.labels(id, &spec.limits),
        };
        let client = self.daemon.client().await?;
        let name =
            CreateContainerOptions { name: Some(site.container.clone()), ..Default::default() };
        client
            .create_container(Some(name), plan.body()?)
            .await
            .map_err(|error| failed("make the container", error))?;
        self.check_made(&site.container).await?;
        client.start_container(&site.container, None).await.map_err(|error| {
            // What it is not here for cannot be: the container was just made.
            Error::internal("the Docker daemon could not start the container").because(error)
        })?;
        let Some((watch, init)) = self.watch(site).await?.map(|(watch, init, _)| (watch, init))
        else {
            return Err(Error::internal("the agent ended as soon as it was started"));
        };
        listening(&watch, &site.place).await?;
        shown.iter().try_for_each(|shown| shown.verify(init))?;
        Ok(AgentSandbox::connect(id.clone(), Arc::new(watch), spec.limits).await?)
    }

    /// What no image can have made otherwise is looked at all the same.
    async fn check_made(&self, container: &str) -> Result<()> {
        let made = self.inspect(container).await?.unwrap_or_default();
        let host = made.host_config.unwrap_or_default();
        let volume = made
            .mounts
            .unwrap_or_default()
            .into_iter()
            .any(|mount| !matches!(mount.typ.as_deref(), Some("bind" | "tmpfs")));
        if host.privileged == Some(true) || (volume && !self.config.weak(Weakness::ImageVolumes)) {
            return Err(Error::internal("the container is not what was asked for"));
        }
        Ok(())
    }

    async fn check_runtime(&self, runtime: Option<&str>) -> Result<()> {
        let Some(runtime) = runtime else { return Ok(()) };
        let known = self.daemon.look().await?.runtimes.unwrap_or_default();
        if known.contains_key(runtime) {
            return Ok(());
        }
        let mut names: Vec<_> = known.into_keys().collect();
        names.sort();
        Err(Error::unsupported(format!("this Docker daemon has no runtime `{runtime}`"))
            .hint(format!("it has: {}; add others to its daemon.json", names.join(", "))))
    }

    /// What no sandbox is shown: Atoll's own, and whatever leads to the daemon.
    async fn private(&self) -> Result<Private> {
        let socket = self.daemon.socket()?;
        let root = self.daemon.info().await?.docker_root_dir.clone();
        let others = self.config.private.iter().cloned();
        let others =
            others.chain(socket.parent().map(PathBuf::from)).chain(root.map(PathBuf::from));
        Private::find(&self.config.state_dir, others).map_err(unusable)
    }

    /// Who a guest is on the host.
    async fn guest(&self) -> Result<u32> {
        let info = self.daemon.info().await?;
        Ok(probe::first_id(info).saturating_add(boot::GUEST))
    }

    async fn inspect(&self, container: &str) -> Result<Option<ContainerInspectResponse>> {
        let options = None::<InspectContainerOptions>;
        match self.daemon.client().await?.inspect_container(container, options).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(failed("look at the container", error)),
        }
    }

    /// A hand on the container if it runs, its first process, and what it may use.
    async fn watch(&self, site: &Site) -> Result<Option<(Watch, i32, Limits)>> {
        let Some(found) = self.inspect(&site.container).await? else { return Ok(None) };
        let state = found.state.unwrap_or_default();
        let pid = state.pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0);
        let (Some(true), Some(pid), Some(id)) = (state.running, pid, found.id) else {
            return Ok(None);
        };
        let labels = found.config.unwrap_or_default().labels.unwrap_or_default();
        let limits = labels::limits(&labels).unwrap_or_default();
        match Watch::new(site.clone(), &id, pid) {
            Ok(watch) => Ok(Some((watch, pid, limits))),
            // It has ended since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
            Err(error) => Err(Error::unavailable("the container's processes cannot be watched")
                .hint("run Atoll where the daemon's processes are seen, not in another container")
                .because(error)),
        }
    }
}

#[async_trait]
impl Engine for DockerEngine {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn isolation(&self) -> Isolation {
        Isolation::Kernel
    }

    async fn probe(&self) -> Result<Probe> {
        Ok(probe::probe(&self.daemon.look().await?))
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

    async fn prepare(&self, root: &Root, report: Report<'_>) -> Result<()> {
        let credentials = self.config.credentials.as_deref();
        pull::prepare(&self.daemon, image_of(root)?, credentials, report).await
    }

    async fn attach(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>> {
        let Some(instance) = self.instance()? else { return Ok(None) };
        let site = self.site(&instance, id);
        let Some((watch, _, limits)) = self.watch(&site).await? else { return Ok(None) };
        match AgentSandbox::connect(id.clone(), Arc::new(watch), limits).await {
            Ok(sandbox) => Ok(Some(sandbox)),
            Err(error) if error.kind() == ErrorKind::Lost => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list(&self) -> Result<Vec<SandboxId>> {
        let Some(instance) = self.instance()? else { return Ok(Vec::new()) };
        let label = format!("{}={}", labels::INSTANCE, instance.as_str());
        let options = ListContainersOptions {
            all: true,
            filters: Some([("label".to_owned(), vec![label])].into()),
            ..Default::default()
        };
        let containers = self.daemon.client().await?.list_containers(Some(options)).await;
        let containers = containers.map_err(|error| failed("list containers", error))?;
        // A label may be an image's; a name is not.
        let names = containers.into_iter().flat_map(|one| one.names.unwrap_or_default());
        let mut ids: Vec<_> = names.filter_map(|name| instance.sandbox(&name)).collect();
        for entry in fs::read_dir(&self.config.state_dir).map_err(unusable)? {
            let name = entry.map_err(unusable)?.file_name();
            ids.extend(name.to_str().and_then(|name| name.parse().ok()));
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    async fn destroy(&self, id: &SandboxId) -> Result<()> {
        match self.instance()? {
            Some(instance) => self.site(&instance, id).clear().await,
            None => Ok(()),
        }
    }
}

/// What the engine cannot do is refused before anything is asked of the daemon.
fn image(spec: &Spec) -> Result<&Image> {
    if spec.network != Network::Loopback {
        return Err(Error::unsupported("the docker engine gives no network beyond loopback"));
    }
    image_of(&spec.root)
}

fn image_of(root: &Root) -> Result<&Image> {
    match root {
        Root::Image(image) => Ok(image),
        _ => Err(Error::unsupported("the docker engine's root is an image")
            .hint("name one in the environment: `roots: {docker: python:3.12-slim}`")),
    }
}

/// Returns when the agent listens.
async fn listening(watch: &Watch, place: &Place) -> Result<()> {
    let listens = async {
        let mut pause = Duration::from_millis(1);
        while place.connect().await.is_err() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    };
    tokio::select! {
        () = listens => Ok(()),
        () = watch.over() => Err(Error::internal("the agent ended as soon as it was started")),
        () = tokio::time::sleep(PATIENCE) => Err(Error::unavailable(
            "the container runs and its agent is not heard of",
        ).hint("the daemon must be on this machine, and see the server's data directory")),
    }
}

/// Something of ours on this host does not work; the message names none of its paths.
fn unusable(error: io::Error) -> Error {
    Error::internal("the engine's place on the host cannot be used").because(error)
}
