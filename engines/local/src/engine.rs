//! Making sandboxes, and finding them again.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::{
        fs::{DirBuilderExt as _, PermissionsExt as _},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use atoll_agent_client::AgentSandbox;
use atoll_agent_protocol::message::{Boot, Rlimit};
use atoll_engine::{
    Engine, Error, ErrorKind, Isolation, Limits, Network, Probe, Result, Root, Sandbox, SandboxId,
    Spec,
};

use crate::{
    Config,
    process::Identity,
    record::Record,
    sandbox::{self, HOME, LocalWarden, Place},
    tree::MARK,
    unsafe_spawn,
    unsafe_vigil::Vigil,
    venv,
};

/// The virtual environment, in a sandbox's directory.
const VENV: &str = "venv";

/// Runs trusted code as processes of this host.
#[derive(Debug, Clone)]
pub struct LocalEngine {
    config: Arc<Config>,
}

impl LocalEngine {
    pub fn new(config: Config) -> Self {
        Self { config: Arc::new(config) }
    }

    /// With no links in it: it is what guests will call their home.
    fn state_dir(&self) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.config.state_dir)?;
        self.config.state_dir.canonicalize()
    }

    fn directory(&self, id: &SandboxId) -> Result<PathBuf> {
        let state_dir = self.state_dir().map_err(unusable)?;
        Ok(state_dir.join(id.as_str()))
    }

    async fn build(self, id: SandboxId, spec: Spec) -> Result<Arc<dyn Sandbox>> {
        let directory = self.directory(&id)?;
        match fs::DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::new(ErrorKind::AlreadyExists, format!("`{id}` exists already")));
            }
            other => other.map_err(unusable)?,
        }
        let built = self.furnish(&id, &spec, &directory).await;
        if built.is_err() {
            // The caller hears of the first failure, the log of the second.
            if let Err(error) = sandbox::destroy(directory).await {
                tracing::error!(sandbox = %id, ?error, "remains of a failed sandbox stay");
            }
        }
        built
    }

    async fn furnish(
        &self,
        id: &SandboxId,
        spec: &Spec,
        directory: &Path,
    ) -> Result<Arc<dyn Sandbox>> {
        let record = Record::intended(spec.limits).map_err(unusable)?;
        record.write(directory).map_err(unusable)?;
        let home = directory.join(HOME);
        fs::create_dir(&home).map_err(unusable)?;
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).map_err(unusable)?;
        if spec.root == Root::Venv {
            venv::make(&directory.join(VENV), &home, &self.config.path).await?;
        }
        let agent = self.start_agent(spec, directory, &home).map_err(unusable)?;
        record.running(agent).write(directory).map_err(unusable)?;
        connect(id, directory.to_owned(), agent, spec.limits)
            .await?
            .ok_or_else(|| Error::internal("the agent ended as soon as it was started"))
    }

    fn start_agent(&self, spec: &Spec, directory: &Path, home: &Path) -> io::Result<Identity> {
        let listener = UnixListener::bind(Place::open(directory)?.socket())?;
        let open_files = spec.limits.open_files.map(|value| Rlimit {
            resource: libc::RLIMIT_NOFILE.cast_signed(),
            value: value.into(),
        });
        let boot = Boot {
            rlimits: open_files.into_iter().collect(),
            home: home.display().to_string(),
            env: self.environment(spec, directory, home),
            disk: home.display().to_string(),
            ..Boot::default()
        };
        let mut child = unsafe_spawn::spawn(boot, &listener, home, (MARK, directory))?;
        let pid = child.id().cast_signed();
        let agent = Identity::of(pid).ok_or_else(|| io::Error::other("the agent is gone"))?;
        let process = agent.open().ok_or_else(|| io::Error::other("the agent is gone"))?;
        let vigil = Vigil::new(process)?;
        tokio::spawn(async move {
            // As long as we are its parent its end waits to be noted by us.
            vigil.over().await;
            child.wait()
        });
        Ok(agent)
    }

    /// `KEY=VALUE` of every process.
    fn environment(&self, spec: &Spec, directory: &Path, home: &Path) -> Vec<String> {
        let mut variables = BTreeMap::from([
            ("PATH".to_owned(), self.config.path.clone()),
            ("HOME".to_owned(), home.display().to_string()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ]);
        variables.extend(spec.env.clone());
        if spec.root == Root::Venv {
            let programs = directory.join(VENV).join("bin");
            let path = variables.entry("PATH".to_owned()).or_default();
            *path = format!("{}:{path}", programs.display());
            let venv = directory.join(VENV).display().to_string();
            variables.insert("VIRTUAL_ENV".to_owned(), venv);
        }
        variables.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
    }
}

#[async_trait]
impl Engine for LocalEngine {
    fn name(&self) -> &'static str {
        "local"
    }

    fn isolation(&self) -> Isolation {
        Isolation::None
    }

    async fn probe(&self) -> Result<Probe> {
        crate::probe::probe(&self.config.path)
    }

    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        if !spec.trusted {
            let message = "the `local` engine isolates nothing and runs only trusted code";
            return Err(Error::new(ErrorKind::Denied, message)
                .hint("use an engine that isolates, or say that the code is trusted"));
        }
        refuse_unsupported(spec)?;
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let building = self.clone().build(id.clone(), spec.clone());
        tokio::spawn(async move {
            // A caller that has left drops what it is sent, and with it the sandbox.
            let _ = sender.send(building.await.map(Unclaimed::new));
        });
        receiver
            .await
            .map_err(|error| Error::internal("creation broke off").because(error))?
            .map(Unclaimed::claim)
    }

    async fn attach(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>> {
        let directory = self.directory(id)?;
        let Some(record) = Record::read(&directory) else { return Ok(None) };
        let Some(agent) = record.agent() else { return Ok(None) };
        connect(id, directory, agent, record.limits()).await
    }

    async fn list(&self) -> Result<Vec<SandboxId>> {
        let entries = fs::read_dir(self.state_dir().map_err(unusable)?).map_err(unusable)?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
    }

    async fn destroy(&self, id: &SandboxId) -> Result<()> {
        sandbox::destroy(self.directory(id)?).await
    }
}

/// The sandbox of an agent; none if it does not run.
async fn connect(
    id: &SandboxId,
    directory: PathBuf,
    agent: Identity,
    limits: Limits,
) -> Result<Option<Arc<dyn Sandbox>>> {
    let Some(warden) = LocalWarden::new(directory, agent).map_err(unusable)? else {
        return Ok(None);
    };
    let sandbox = AgentSandbox::connect(id.clone(), Arc::new(warden), limits).await?;
    Ok(Some(sandbox))
}

/// Every field that asks for a fence is one that this engine does not have.
fn refuse_unsupported(spec: &Spec) -> Result<()> {
    let Limits { memory, cpus, pids, disk, cpu_time: _, open_files: _, output: _ } = spec.limits;
    let asked = [
        (memory.is_some(), "a limit of memory"),
        (cpus.is_some(), "a limit of cpus"),
        (pids.is_some(), "a limit of pids"),
        (disk.is_some(), "a limit of disk"),
        (!spec.mounts.is_empty(), "a mount"),
        (spec.network != Network::Host, "a network of its own"),
        (matches!(spec.root, Root::Directory(_)), "a directory as its root"),
        (matches!(spec.root, Root::Image(_)), "an image as its root"),
        (spec.runtime.is_some(), "a runtime"),
    ];
    match asked.into_iter().find(|(is_asked, _)| *is_asked) {
        None => Ok(()),
        Some((_, what)) => {
            Err(Error::unsupported(format!("a sandbox of the `local` engine cannot have {what}")))
        }
    }
}

/// Something of ours on this host does not work; the message names none of its paths.
fn unusable(error: io::Error) -> Error {
    Error::internal("the sandbox's place on the host cannot be used").because(error)
}

/// A sandbox on its way to whoever asked for it; destroyed if it does not arrive.
struct Unclaimed(Option<Arc<dyn Sandbox>>);

impl Unclaimed {
    fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        Self(Some(sandbox))
    }

    fn claim(mut self) -> Arc<dyn Sandbox> {
        self.0.take().expect("it is claimed once, by value")
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        let Some(sandbox) = self.0.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = sandbox.destroy().await {
                    tracing::error!(sandbox = %sandbox.id(), ?error, "an abandoned sandbox stays");
                }
            });
        }
    }
}
