//! The settings as the rest of Atoll gets them: plain values, every question answered.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use atoll_types::{
    limits::Limits,
    quantity::{Size, Span},
};
use serde::Deserialize;

use crate::{Error, Result, Secret, Surroundings, load::secret, variable};

#[derive(Debug, Clone)]
pub struct Settings {
    pub data_dir: PathBuf,
    pub environments_dir: PathBuf,
    pub log: String,
    pub server: Server,
    pub sessions: Sessions,
    pub limits: LimitSettings,
    pub mounts: Mounts,
    pub engines: Engines,
    pub client: Client,
}

#[derive(Debug, Clone)]
pub struct Server {
    pub listen: SocketAddr,
    pub insecure: bool,
    /// The certificate chain's file and the key's.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub hosts: Vec<String>,
    pub idle_exit: Duration,
    pub port_timeout: Duration,
}

#[derive(Debug, Clone)]
pub struct Sessions {
    pub environment: String,
    pub engine: String,
    pub timeout: Duration,
    pub max_timeout: Duration,
    pub idle: Duration,
    pub execution_timeout: Duration,
    pub max_execution_timeout: Duration,
    pub max_sessions: usize,
    pub keep_records: Duration,
}

#[derive(Debug, Clone)]
pub struct LimitSettings {
    pub default: Limits,
    pub max: Limits,
}

#[derive(Debug, Clone)]
pub struct Mounts {
    pub allow: Vec<AllowedMount>,
}

/// A directory whose contents may be shown inside sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedMount {
    /// Absolute.
    pub path: PathBuf,
    pub writable: bool,
}

#[derive(Debug, Clone)]
pub struct Engines {
    pub trust_local: bool,
    pub docker: Docker,
}

#[derive(Debug, Clone)]
pub struct Docker {
    /// Where the daemon listens; empty for the usual places.
    pub host: String,
    /// A file in the form of Docker's own `config.json`, for registries.
    pub credentials: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Client {
    pub server: Option<String>,
    /// A file of the only certificate authorities to believe.
    pub ca_file: Option<PathBuf>,
    pub api_key: Option<Secret>,
}

/// The settings as they are written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    data_dir: String,
    environments_dir: String,
    log: String,
    server: WrittenServer,
    sessions: WrittenSessions,
    limits: WrittenLimits,
    mounts: WrittenMounts,
    engines: WrittenEngines,
    client: WrittenClient,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenServer {
    listen: String,
    insecure: bool,
    tls_cert: String,
    tls_key: String,
    hosts: Vec<String>,
    idle_exit: Span,
    port_timeout: Span,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSessions {
    environment: String,
    engine: String,
    timeout: Span,
    max_timeout: Span,
    idle: Span,
    execution_timeout: Span,
    max_execution_timeout: Span,
    max_sessions: usize,
    keep_records: Span,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLimits {
    memory: Size,
    cpus: f64,
    pids: u32,
    open_files: u32,
    output: Size,
    disk: Size,
    max: WrittenMaximum,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMaximum {
    memory: Size,
    cpus: f64,
    pids: u32,
    open_files: u32,
    output: Size,
    disk: Size,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMounts {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEngines {
    trust_local: bool,
    docker: WrittenDocker,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDocker {
    host: String,
    credentials: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClient {
    server: String,
    ca_file: String,
    api_key_file: String,
}

impl Settings {
    pub(crate) fn resolve(written: Written, data: PathBuf, here: &Surroundings) -> Result<Self> {
        let data_dir = path("data_dir", &written.data_dir)?.unwrap_or(data);
        let environments_dir = path("environments_dir", &written.environments_dir)?
            .unwrap_or_else(|| data_dir.join("environments"));
        Ok(Self {
            data_dir,
            environments_dir,
            log: written.log,
            server: server(written.server)?,
            sessions: sessions(written.sessions)?,
            limits: limits(&written.limits)?,
            mounts: Mounts {
                allow: written
                    .mounts
                    .allow
                    .iter()
                    .map(|text| mount(text))
                    .collect::<Result<_>>()?,
            },
            engines: Engines {
                trust_local: written.engines.trust_local,
                docker: docker(written.engines.docker, here)?,
            },
            client: client(written.client, here)?,
        })
    }
}

fn server(written: WrittenServer) -> Result<Server> {
    let listen = written.listen.parse().map_err(|_| {
        Error::new(format!("server.listen: `{}` is not an address and a port", written.listen))
            .hint("write it as 127.0.0.1:8000 or [::1]:8000; port 0 takes a free one")
    })?;
    let tls = match (
        path("server.tls_cert", &written.tls_cert)?,
        path("server.tls_key", &written.tls_key)?,
    ) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        _ => {
            return Err(Error::new("TLS needs both a certificate and its key")
                .hint("set server.tls_cert and server.tls_key, or neither"));
        }
    };
    Ok(Server {
        listen,
        insecure: written.insecure,
        tls,
        hosts: written.hosts,
        idle_exit: written.idle_exit.0,
        port_timeout: written.port_timeout.0,
    })
}

fn sessions(written: WrittenSessions) -> Result<Sessions> {
    let pairs = [
        ("timeout", written.timeout, written.max_timeout),
        ("execution_timeout", written.execution_timeout, written.max_execution_timeout),
    ];
    for (name, usual, most) in pairs {
        if usual > most {
            return Err(Error::new(format!(
                "sessions.{name} ({usual}) is longer than sessions.max_{name} ({most})"
            )));
        }
    }
    Ok(Sessions {
        environment: written.environment,
        engine: written.engine,
        timeout: written.timeout.0,
        max_timeout: written.max_timeout.0,
        idle: written.idle.0,
        execution_timeout: written.execution_timeout.0,
        max_execution_timeout: written.max_execution_timeout.0,
        max_sessions: written.max_sessions,
        keep_records: written.keep_records.0,
    })
}

fn limits(written: &WrittenLimits) -> Result<LimitSettings> {
    let max = &written.max;
    let above = [
        ("memory", written.memory.0 > max.memory.0),
        ("cpus", max.cpus > 0.0 && written.cpus > max.cpus),
        ("pids", written.pids > max.pids),
        ("open_files", written.open_files > max.open_files),
        ("output", written.output.0 > max.output.0),
        ("disk", written.disk.0 > max.disk.0),
    ];
    if let Some((name, _)) = above.iter().find(|(_, above)| *above) {
        return Err(Error::new(format!("limits.{name} is more than limits.max.{name}")));
    }
    for (name, cpus) in [("limits.cpus", written.cpus), ("limits.max.cpus", max.cpus)] {
        if !(cpus.is_finite() && cpus >= 0.0) {
            return Err(Error::new(format!("{name}: `{cpus}` is not a number of processors")));
        }
    }
    Ok(LimitSettings {
        default: Limits {
            memory: Some(written.memory),
            cpus: Some(written.cpus).filter(|cpus| *cpus > 0.0),
            cpu_time: None,
            pids: Some(written.pids),
            open_files: Some(written.open_files),
            output: Some(written.output),
            disk: Some(written.disk),
        },
        max: Limits {
            memory: Some(max.memory),
            cpus: Some(max.cpus).filter(|cpus| *cpus > 0.0),
            cpu_time: None,
            pids: Some(max.pids),
            open_files: Some(max.open_files),
            output: Some(max.output),
            disk: Some(max.disk),
        },
    })
}

/// `/srv/data` or `/srv/data:ro`.
fn mount(text: &str) -> Result<AllowedMount> {
    let (path, writable) = match text.rsplit_once(':') {
        Some((path, "ro")) => (path, false),
        Some((path, "rw")) => (path, true),
        _ => (text, true),
    };
    let path = PathBuf::from(path);
    if !path.is_absolute() {
        return Err(Error::new(format!("mounts.allow: `{text}` is not an absolute path"))
            .hint("write /srv/data, or /srv/data:ro for reading only"));
    }
    Ok(AllowedMount { path, writable })
}

fn client(written: WrittenClient, here: &Surroundings) -> Result<Client> {
    let file = path("client.api_key_file", &written.api_key_file)?;
    let server = Some(written.server).filter(|server| !server.is_empty());
    let api_key = match &server {
        Some(_) => secret(variable::API_KEY, file.as_deref(), here)?,
        None => None,
    };
    Ok(Client { server, ca_file: path("client.ca_file", &written.ca_file)?, api_key })
}

fn docker(written: WrittenDocker, here: &Surroundings) -> Result<Docker> {
    let credentials = path("engines.docker.credentials", &written.credentials)?;
    let usual = || here.directory(variable::HOME).map(|home| home.join(".docker/config.json"));
    Ok(Docker { host: written.host, credentials: credentials.or_else(usual) })
}

/// A path, none if it is empty. Relative ones would mean another place to each command.
fn path(key: &str, text: &str) -> Result<Option<PathBuf>> {
    if text.is_empty() {
        return Ok(None);
    }
    let path = PathBuf::from(text);
    if path.is_absolute() {
        return Ok(Some(path));
    }
    Err(Error::new(format!("{key}: `{text}` is not an absolute path")))
}
