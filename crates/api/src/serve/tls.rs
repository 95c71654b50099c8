//! TLS, for addresses beyond loopback.

use std::{fmt, io, sync::Arc, time::Duration};

use rustls::{ServerConfig, crypto::ring};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A certificate and its key, ready for use.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// The certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

impl Tls {
    /// Takes a chain of certificates and a private key, both PEM.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, Unusable> {
        let certificates: Vec<_> = rustls_pemfile::certs(&mut &*certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| Unusable(format!("the certificate is not PEM: {error}")))?;
        if certificates.is_empty() {
            return Err(Unusable("there is no certificate in the certificate file".to_owned()));
        }
        let key = rustls_pemfile::private_key(&mut &*key)
            .map_err(|error| Unusable(format!("the private key is not PEM: {error}")))?
            .ok_or_else(|| Unusable("there is no private key in the key file".to_owned()))?;
        let mut settings = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Unusable(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(|error| Unusable(format!("certificate and key do not fit: {error}")))?;
        settings.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(settings))))
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        tokio::time::timeout(PATIENCE, self.0.accept(stream))
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}
