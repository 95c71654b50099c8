//! Keeps web pages out: a name that is not ours, or a page that is not ours, is refused.
//!
//! A page can make its visitor's browser call this server, and can make its own name point here.
//! It can neither hide the name it used (`Host`) nor itself (`Origin`, `Sec-Fetch-Site`).

use std::net::IpAddr;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Uri, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use crate::{app::App, error::Error, peer::Peer};

/// Refuses a request that a foreign page may have sent.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let reached = match request.extensions().get::<Peer>() {
        Some(Peer::Operator { .. }) => return next.run(request).await,
        Some(Peer::Network { reached, .. }) => Some(*reached),
        None => None,
    };
    match judge(&app.settings.hosts, reached, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(reason) => Error::denied(reason).into_response(),
    }
}

fn judge(
    names: &[String],
    reached: Option<IpAddr>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        _ => return Err("a request names one host"),
    };
    let asked = uri.authority().map(axum::http::uri::Authority::as_str);
    for name in asked.into_iter().chain([host]) {
        if !is_ours(names, reached, name) {
            return Err("this server does not go by that name");
        }
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let own = |scheme| format!("{scheme}://{host}");
        if ["http", "https"].into_iter().all(|scheme| origin.as_bytes() != own(scheme).as_bytes()) {
            return Err("pages of other origins may not call this server");
        }
    }
    match headers.get("sec-fetch-site").map(axum::http::HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err("pages of other sites may not call this server"),
    }
}

/// Whether `authority` (a host, perhaps with a port) is a name of this server.
fn is_ours(names: &[String], reached: Option<IpAddr>, authority: &str) -> bool {
    let Some(host) = host(authority) else { return false };
    let address: Option<IpAddr> = host.parse().ok();
    host.eq_ignore_ascii_case("localhost")
        || address.is_some_and(|address| address.is_loopback() || Some(address) == reached)
        || names.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// The host of `host`, `host:port` or `[address]:port`.
fn host(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':').or_else(|| rest.is_empty().then_some("0"))?)
        }
        None => authority.split_once(':').unwrap_or((authority, "0")),
    };
    (!host.is_empty() && port.parse::<u16>().is_ok()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(pairs: &[(&'static str, &str)]) -> Result<(), &'static str> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        let reached = Some("192.0.2.7".parse().unwrap());
        judge(&["atoll.example".to_owned()], reached, &Uri::from_static("/api"), &headers)
    }

    #[test]
    fn loopback_the_reached_address_and_given_names_are_ours() {
        for host in [
            "localhost",
            "localhost:8000",
            "LOCALHOST",
            "127.0.0.1:8000",
            "127.0.0.1",
            "[::1]:8000",
            "[::1]",
            "192.0.2.7:8000",
            "atoll.example",
            "Atoll.Example:443",
        ] {
            assert_eq!(verdict(&[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn any_other_name_is_refused() {
        for host in [
            "",
            "evil.example",
            "evil.example:8000",
            "localhost.",
            "localhost.evil.example",
            "0.0.0.0",
            "0.0.0.0:8000",
            "192.0.2.8",
            "127.0.0.1.evil.example",
            "[::2]",
            "[::1",
            "[::1]x",
            "::1",
            "2130706433",
            "0x7f.1",
            "localhost:notaport",
            "localhost:8000:1",
            "user@localhost",
        ] {
            assert!(verdict(&[("host", host)]).is_err(), "{host}");
        }
        assert!(verdict(&[]).is_err(), "no host");
        assert!(verdict(&[("host", "localhost"), ("host", "localhost")]).is_err(), "two hosts");
    }

    #[test]
    fn the_host_of_the_request_line_counts_too() {
        let headers = HeaderMap::from_iter([(header::HOST, "localhost".parse().unwrap())]);
        let uri = Uri::from_static("http://evil.example/api");

        assert!(judge(&[], None, &uri, &headers).is_err());
    }

    #[test]
    fn only_our_own_pages_may_call() {
        let host = ("host", "localhost:8000");
        for (name, value, fine) in [
            ("origin", "http://localhost:8000", true),
            ("origin", "https://localhost:8000", true),
            ("origin", "http://localhost:9000", false),
            ("origin", "http://evil.example", false),
            ("origin", "null", false),
            ("origin", "http://localhost:8000.evil.example", false),
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "none", true),
            ("sec-fetch-site", "same-site", false),
            ("sec-fetch-site", "cross-site", false),
            ("sec-fetch-site", "", false),
        ] {
            assert_eq!(verdict(&[host, (name, value)]).is_ok(), fine, "{name}: {value}");
        }
    }
}
