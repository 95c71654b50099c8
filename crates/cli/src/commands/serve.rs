//! `atoll serve`: a server for others.

use std::path::PathBuf;

use atoll_config::Flags;
use clap::Args;

use crate::{
    failure::{Failure, Result},
    invocation::{Invocation, text},
    server::{self, Mode},
};

/// Serve the API over the network, in the foreground
#[derive(Debug, Args)]
#[command(
    after_help = "Every request over the network needs a key (`atoll key create NAME`). An address beyond
loopback needs TLS, or --insecure if something in front of Atoll does it. ^C stops the server;
its sandboxes live on, and the next one takes them over.

Examples:
  atoll serve
  atoll serve --listen 127.0.0.1:9000 --data-dir /srv/atoll
  atoll serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --host atoll.example.org"
)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// The certificate chain, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen beyond loopback without TLS
    #[arg(long)]
    insecure: bool,
    /// A name clients may call this server by, besides its address
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
}

impl Arguments {
    /// The flags as settings.
    pub(crate) fn set(&self, flags: &mut Flags) -> Result {
        flags.set("server.listen", self.listen.clone());
        flags.set("server.tls_cert", self.tls_cert.as_ref().map(text).transpose()?);
        flags.set("server.tls_key", self.tls_key.as_ref().map(text).transpose()?);
        flags.set("server.insecure", self.insecure.then_some(true));
        let hosts = (!self.host.is_empty()).then(|| self.host.clone());
        flags.set("server.hosts", hosts);
        Ok(())
    }
}

pub(crate) async fn run(invocation: &Invocation) -> Result<u8> {
    let settings = invocation.settings();
    let listen = settings.server.listen;
    if !listen.ip().is_loopback() && settings.server.tls.is_none() && !settings.server.insecure {
        return Err(Failure::new(format!(
            "{listen} can be reached from other machines, and there is no TLS"
        ))
        .hint(
            "give --tls-cert and --tls-key, or --insecure if something in front of Atoll does TLS",
        ));
    }
    server::run(&invocation.loaded, Mode::Serve, invocation.printer).await?;
    Ok(0)
}
