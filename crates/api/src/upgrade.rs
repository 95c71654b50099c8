//! A request that turns its connection into something else than HTTP.

use std::io;

use axum::{
    http::{
        HeaderMap, HeaderValue, Request, StatusCode,
        header::{CONNECTION, UPGRADE},
    },
    response::{IntoResponse as _, Response},
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{app::Settings, serve::Unhurried};

/// A connection that may become one of bytes, once its request was answered with
/// [`switching`].
#[derive(Debug)]
pub(crate) struct Upgrade {
    when: OnUpgrade,
    unhurried: Option<Unhurried>,
}

/// Whether the request wants its connection to become `protocol`.
pub(crate) fn asks_for(headers: &HeaderMap, protocol: &str) -> bool {
    has_word(headers.get_all(CONNECTION), "upgrade") && has_word(headers.get_all(UPGRADE), protocol)
}

/// Takes the connection out of its request; none if it can become nothing else.
pub(crate) fn take<B>(request: &mut Request<B>) -> Option<Upgrade> {
    let unhurried = request.extensions_mut().remove();
    request.extensions_mut().remove().map(|when| Upgrade { when, unhurried })
}

/// The answer after which the connection is `protocol`.
pub(crate) fn switching(protocol: HeaderValue) -> Response {
    let headers = [(CONNECTION, HeaderValue::from_static("upgrade")), (UPGRADE, protocol)];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

impl Upgrade {
    /// Carries bytes between the client and `other`, either way until its end, and gives up when
    /// the server stops.
    pub(crate) fn carry<S>(self, mut other: S, settings: &Settings)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let closing = settings.closing.clone();
        tokio::spawn(async move {
            let carried = async {
                let upgraded: Upgraded = self.when.await.map_err(io::Error::other)?;
                // Who reads slowly here may: it is at most one of a sandbox's few tunnels.
                if let Some(unhurried) = self.unhurried {
                    unhurried.set();
                }
                tokio::io::copy_bidirectional(&mut TokioIo::new(upgraded), &mut other).await
            };
            tokio::select! {
                result = carried => match result {
                    Ok((up, down)) => tracing::debug!(up, down, "a tunnel ended"),
                    Err(error) => tracing::debug!(%error, "a tunnel broke"),
                },
                () = closing.cancelled() => {}
            }
        });
    }
}

fn has_word<'a>(values: impl IntoIterator<Item = &'a HeaderValue>, word: &str) -> bool {
    let words = values.into_iter().filter_map(|value| value.to_str().ok());
    words.flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_headers_have_to_say_so() {
        let asks = |connection: &str, upgrade: &str| {
            let pairs = [(CONNECTION, connection), (UPGRADE, upgrade)];
            let pairs = pairs.map(|(name, value)| (name, value.parse().unwrap()));
            asks_for(&HeaderMap::from_iter(pairs), "websocket")
        };

        assert!(asks("Upgrade", "websocket"));
        assert!(asks("keep-alive, upgrade", "WebSocket"));
        assert!(!asks("keep-alive", "websocket"));
        assert!(!asks("upgrade", "h2c"));
        assert!(!asks("upgraded", "websocket"));
        assert!(!asks_for(&HeaderMap::new(), "websocket"));
    }
}
