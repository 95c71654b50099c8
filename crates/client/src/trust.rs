//! Which certificates a client believes.

use std::{fs::File, io::BufReader, path::Path, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::ring};

use crate::error::{Error, Result};

/// Where the system keeps its certificate authorities, by distribution.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Whose word counts for a server's certificate.
#[derive(Debug, Clone, Default)]
pub enum Trust {
    /// The authorities this machine trusts.
    #[default]
    System,
    /// Only those of a PEM text.
    Pem(Vec<u8>),
}

impl Trust {
    pub(crate) fn settings(&self) -> Result<Arc<ClientConfig>> {
        let roots = match self {
            Self::System => system()?,
            Self::Pem(pem) => roots(&mut pem.as_slice())
                .ok_or_else(|| Error::Settings("no certificate in the given PEM".to_owned()))?,
        };
        let settings = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Settings(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(settings))
    }
}

fn system() -> Result<RootCertStore> {
    SYSTEM
        .iter()
        .filter_map(|path| File::open(Path::new(path)).ok())
        .find_map(|file| roots(&mut BufReader::new(file)))
        .ok_or_else(|| Error::Settings("this system has no certificate authorities".to_owned()))
}

/// Every certificate of a PEM text; none if there is none.
fn roots(pem: &mut dyn std::io::BufRead) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_pemfile::certs(pem).filter_map(Result::ok));
    (!roots.is_empty()).then_some(roots)
}
