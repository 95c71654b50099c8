//! A connection that stops being HTTP.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::{
    Method, Request, StatusCode,
    client::conn::http1,
    header::{AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderValue, UPGRADE},
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    Client,
    body::{self, Body},
    error::{Error, Result},
};

/// Bytes both ways, on a connection of their own. Dropping it ends it; either direction can be
/// ended alone, by `shutdown` and by the other side.
#[derive(Debug)]
pub struct Tunnel(TokioIo<Upgraded>);

impl Client {
    /// Asks for `target` and for the connection to become `protocol`.
    pub(crate) async fn upgrade(
        &self,
        target: &str,
        protocol: &'static str,
        headers: HeaderMap,
    ) -> Result<Tunnel> {
        let unreachable =
            |error: io::Error| Error::Unreachable { at: self.at.clone(), source: error.into() };
        let wire = self.connector.open().await.map_err(unreachable)?;
        let (mut sender, connection) =
            http1::handshake::<_, Body>(wire).await.map_err(Error::broken)?;
        // Over when the connection is handed on, or was refused.
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::new(body::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() =
            target.parse().map_err(|_| Error::Settings(format!("`{target}` is not a path")))?;
        *request.headers_mut() = headers;
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(protocol));
        let host = self.base.split_once("://").map_or("localhost", |(_, host)| host);
        let host = HeaderValue::from_str(host);
        headers.insert(HOST, host.map_err(|_| Error::Settings("no such host".to_owned()))?);
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        let answer = sender.send_request(request).await.map_err(Error::broken)?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = answer.status();
            body::judge(answer).await?;
            return Err(Error::Garbled(format!("status {status} instead of a connection")));
        }
        let upgraded = hyper::upgrade::on(answer).await.map_err(Error::broken)?;
        Ok(Tunnel(TokioIo::new(upgraded)))
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
