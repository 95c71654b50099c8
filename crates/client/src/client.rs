//! The connection pool and the shape of every request.

use std::{fmt, path::PathBuf, time::Duration};

use hyper::{
    Method, Request, Response, Uri,
    body::Incoming,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use hyper_util::{
    client::legacy::Client as Pool,
    rt::{TokioExecutor, TokioTimer},
};
use rustls::pki_types::ServerName;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    body::{self, Body},
    connect::Connector,
    error::{Error, Result},
    trust::Trust,
};

/// Shorter than the server keeps an idle connection, so that it is never the server that hangs up
/// on a request.
const IDLE: Duration = Duration::from_secs(5);

/// A server of Atoll. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    pool: Pool<Connector, Body>,
    /// For connections that are not shared.
    pub(crate) connector: Connector,
    /// What requests begin with, and what errors name.
    pub(crate) base: String,
    pub(crate) at: String,
    pub(crate) key: Option<HeaderValue>,
}

impl Client {
    /// The server behind a unix socket, which needs no key.
    pub fn unix(socket: impl Into<PathBuf>) -> Self {
        let socket = socket.into();
        let at = socket.display().to_string();
        Self::over(Connector::Unix(socket), "http://localhost".to_owned(), at, None)
    }

    /// The server at `http://host:port` or `https://host:port`, and the key it gave.
    pub fn tcp(url: &str, key: &str, trust: &Trust) -> Result<Self> {
        let wrong = || Error::Settings(format!("`{url}` is not a server's address"));
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        if !matches!(uri.path(), "" | "/") || authority.as_str().contains('@') {
            return Err(wrong());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let tls = if secure {
            let name = ServerName::try_from(host.clone()).map_err(|_| wrong())?;
            Some((trust.settings()?, name))
        } else {
            None
        };
        let mut key = HeaderValue::try_from(format!("Bearer {key}"))
            .map_err(|_| Error::Settings("the key holds signs no key has".to_owned()))?;
        key.set_sensitive(true);
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let base = format!("{}://{authority}", if secure { "https" } else { "http" });
        Ok(Self::over(Connector::Tcp { host, port, tls }, base, url.to_owned(), Some(key)))
    }

    fn over(connector: Connector, base: String, at: String, key: Option<HeaderValue>) -> Self {
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector.clone());
        Self { pool, connector, base, at, key }
    }

    /// Sends one request and returns its good answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Body,
    ) -> Result<Response<Incoming>> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = format!("{}{target}", self.base)
            .parse()
            .map_err(|_| Error::Settings(format!("`{target}` is not a path")))?;
        *request.headers_mut() = headers;
        if let Some(key) = &self.key {
            request.headers_mut().insert(AUTHORIZATION, key.clone());
        }
        let answer = self.pool.request(request).await.map_err(|error| {
            if error.is_connect() {
                Error::Unreachable { at: self.at.clone(), source: error.into() }
            } else {
                Error::broken(error)
            }
        })?;
        body::judge(answer).await
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, target: &str) -> Result<T> {
        body::json(self.send(Method::GET, target, HeaderMap::new(), body::empty()).await?).await
    }

    pub(crate) async fn delete(&self, target: &str) -> Result<()> {
        let answer = self.send(Method::DELETE, target, HeaderMap::new(), body::empty()).await?;
        body::nothing(answer).await
    }

    /// Posts a JSON body for a JSON answer.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        target: &str,
        content: &(impl Serialize + Sync),
    ) -> Result<T> {
        body::json(self.post_json(target, content).await?).await
    }

    /// Posts a JSON body for an answer that says nothing more.
    pub(crate) async fn tell(&self, target: &str, content: &(impl Serialize + Sync)) -> Result<()> {
        body::nothing(self.post_json(target, content).await?).await
    }

    async fn post_json(
        &self,
        target: &str,
        content: &(impl Serialize + Sync),
    ) -> Result<Response<Incoming>> {
        let content = serde_json::to_vec(content)
            .map_err(|error| Error::Settings(format!("the request cannot be written: {error}")))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(Method::POST, target, headers, body::whole(content)).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("at", &self.at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_address_is_a_server() {
        for bad in ["", "127.0.0.1:8000", "ftp://a", "http://a/b", "http://u@a", "http://"] {
            assert!(Client::tcp(bad, "k", &Trust::System).is_err(), "{bad}");
        }
        for good in ["http://127.0.0.1:8000", "http://[::1]:8000/", "http://localhost"] {
            assert!(Client::tcp(good, "k", &Trust::System).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let client = Client::tcp("http://localhost", "hush", &Trust::System).unwrap();

        assert!(!format!("{client:?}").contains("hush"));
    }
}
