//! The daemon, wherever it listens, and what its answers mean.

use std::path::{Path, PathBuf};

use atoll_engine::{Error, ErrorKind, Result};
use bollard::{
    API_DEFAULT_VERSION, Docker, errors::Error as Failure, models::SystemInfo, query_parameters,
};
use tokio::sync::OnceCell;

/// Seconds one answer may take; building and pulling answer bit by bit.
const PATIENCE: u64 = 120;

/// A daemon that is asked for when it is needed.
#[derive(Debug)]
pub(crate) struct Daemon {
    host: String,
    client: OnceCell<(Docker, SystemInfo)>,
}

impl Daemon {
    pub(crate) fn new(host: String) -> Self {
        Self { host, client: OnceCell::new() }
    }

    pub(crate) async fn client(&self) -> Result<&Docker> {
        self.connected().await.map(|(client, _)| client)
    }

    /// What the daemon said of itself when it was first asked.
    pub(crate) async fn info(&self) -> Result<&SystemInfo> {
        self.connected().await.map(|(_, info)| info)
    }

    async fn connected(&self) -> Result<&(Docker, SystemInfo)> {
        self.client
            .get_or_try_init(|| async {
                let path = self.socket()?;
                let path = path.to_string_lossy();
                let client = Docker::connect_with_unix(&path, PATIENCE, API_DEFAULT_VERSION)
                    .map_err(silent)?;
                let client = client.negotiate_version().await.map_err(silent)?;
                let info = client.info().await.map_err(silent)?;
                Ok((client, info))
            })
            .await
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> Result<PathBuf> {
        match self.host.strip_prefix("unix://").unwrap_or(&self.host) {
            "" => usual().into_iter().find(|path| path.exists()).ok_or_else(|| {
                Error::unavailable("no Docker or Podman daemon listens here").hint(
                    "install and start one (apt-get install docker.io), or say where it listens \
                     with `engines.docker.host`",
                )
            }),
            path if Path::new(path).is_absolute() => Ok(path.into()),
            _ => Err(Error::unavailable("the Docker daemon is on another machine").hint(
                "the agent is reached over a socket in a shared directory: run Atoll beside the \
                 daemon, and set `engines.docker.host` to a path",
            )),
        }
    }

    /// What a fresh look shows of the daemon, for what may change while it runs.
    pub(crate) async fn look(&self) -> Result<SystemInfo> {
        self.client().await?.info().await.map_err(|error| failed("ask the daemon", error))
    }

    /// Removes a container and every volume that was made for it. Of none: does nothing.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), Failure> {
        let options =
            query_parameters::RemoveContainerOptions { force: true, v: true, link: false };
        let (client, _) = self.connected().await.map_err(|error| Failure::IOError {
            err: std::io::Error::new(std::io::ErrorKind::NotConnected, error),
        })?;
        match client.remove_container(name, Some(options)).await {
            Err(error) if status(&error) == Some(404) => Ok(()),
            removed => removed,
        }
    }
}

/// Docker's own socket, then those of daemons of this user, then Podman's.
fn usual() -> Vec<PathBuf> {
    let user = PathBuf::from(format!("/run/user/{}", rustix::process::getuid().as_raw()));
    vec![
        "/var/run/docker.sock".into(),
        user.join("docker.sock"),
        user.join("podman/podman.sock"),
        "/run/podman/podman.sock".into(),
    ]
}

/// The number of an answer that says no.
pub(crate) fn status(error: &Failure) -> Option<u16> {
    match error {
        Failure::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// What went wrong, for whoever asked for `what`. The daemon's own words may name paths of the
/// host: they are the source.
pub(crate) fn failed(what: &str, error: Failure) -> Error {
    let message = format!("the Docker daemon could not {what}");
    match status(&error) {
        Some(404) => Error::not_found(message).because(error),
        Some(409) => Error::new(ErrorKind::AlreadyExists, message).because(error),
        Some(_) => Error::internal(message).because(error),
        None => silent(error),
    }
}

fn silent(error: Failure) -> Error {
    match error {
        Failure::RequestTimeoutError => {
            Error::new(ErrorKind::TimedOut, "the Docker daemon does not answer").because(error)
        }
        Failure::DockerResponseServerError { .. } | Failure::JsonDataError { .. } => {
            Error::unavailable("the Docker daemon gives no usable answer").because(error)
        }
        error => Error::unavailable("the Docker daemon cannot be reached")
            .hint(
                "start it (systemctl start docker), or let the server's user use its socket \
                 (usermod -aG docker USER; it is as good as root)",
            )
            .because(error),
    }
}
