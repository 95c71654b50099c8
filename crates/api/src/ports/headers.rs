//! What a program in a sandbox is told of a request, and what it may say in its answer.
//!
//! The program is nobody's friend, and answers under the name of this server:
//! - It gets no credentials of ours, and cookies only if they came from itself.
//! - It changes nothing for the rest of this origin: what browsers would apply beyond its own
//!   answer is taken out, and a browser that shows it gives it an origin of its own.
//! - It sends no client elsewhere, who might take its key along.

use axum::http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{self, CONNECTION, UPGRADE},
};

use super::{Gate, cookies, forward::WEBSOCKET, redirect};

/// Of one connection only, whatever `Connection` says.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Not the program's to know: our credentials, and who else was asked or lied to.
const KEPT_FROM_PROGRAM: &[&str] = &[
    "authorization",
    "x-api-key",
    "cookie",
    "host",
    "origin",
    "referer",
    "expect",
    "forwarded",
    "via",
    "x-real-ip",
];

/// Not the program's to say.
const KEPT_FROM_CLIENT: &[&str] = &[
    // Would ask for a password in our name.
    "www-authenticate",
    // Would change what a browser does with the rest of this origin.
    "service-worker-allowed",
    "clear-site-data",
    "strict-transport-security",
    "public-key-pins",
    "public-key-pins-report-only",
    "expect-ct",
    "alt-svc",
    "origin-agent-cluster",
    "nel",
    "report-to",
    "reporting-endpoints",
    // Would lead elsewhere.
    "refresh",
    "content-location",
    // Written anew.
    "location",
    "set-cookie",
    // Ours to say.
    "x-request-id",
    "x-atoll-port",
    "server-timing",
];

/// A browser that shows the answer treats it as of an origin of its own: no cookies, no storage,
/// no call of this API in our name.
const POLICY: &str = "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads";

/// The headers of a request as the program gets them.
pub(super) fn to_program(gate: &Gate, from: &HeaderMap) -> HeaderMap {
    let mut to = passed_on(from, KEPT_FROM_PROGRAM, "x-forwarded-");
    let own = format!("localhost:{}", gate.port);
    set(&mut to, header::HOST, &own);
    if from.contains_key(header::ORIGIN) {
        // It was ours, or the request would not be here.
        set(&mut to, header::ORIGIN, &format!("http://{own}"));
    }
    if let Some(cookies) = cookies::to_program(from) {
        to.insert(header::COOKIE, cookies);
    }
    if let Some(host) = from.get(header::HOST) {
        to.insert("x-forwarded-host", host.clone());
    }
    if let Some(from) = gate.from {
        set(&mut to, HeaderName::from_static("x-forwarded-for"), &from.to_string());
    }
    let scheme = if gate.secure { "https" } else { "http" };
    set(&mut to, HeaderName::from_static("x-forwarded-proto"), scheme);
    set(&mut to, HeaderName::from_static("x-forwarded-prefix"), &gate.prefix);
    to
}

/// Says that the connection should become a WebSocket.
pub(super) fn ask_for_websocket(to: &mut HeaderMap) {
    to.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    to.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
}

/// The headers of an answer as the client gets them.
pub(super) fn from_program(gate: &Gate, from: &HeaderMap) -> HeaderMap {
    let mut to = passed_on(from, KEPT_FROM_CLIENT, "access-control-");
    if let Some(place) = from.get(header::LOCATION).and_then(|value| redirect::place(gate, value)) {
        to.insert(header::LOCATION, place);
    }
    for cookie in from.get_all(header::SET_COOKIE) {
        if let Some(cookie) = cookies::to_client(gate, cookie) {
            to.append(header::SET_COOKIE, cookie);
        }
    }
    // Besides its own: of several policies all hold.
    to.append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    to.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    to.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    to.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    to.insert("x-atoll-port", HeaderValue::from(gate.port));
    to
}

/// All headers but those of the connection, those in `kept`, and those that begin so.
fn passed_on(from: &HeaderMap, kept: &[&str], beginning: &str) -> HeaderMap {
    let named: Vec<String> = from
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let goes = |name: &HeaderName| {
        let name = name.as_str();
        !HOP_BY_HOP.contains(&name)
            && !kept.contains(&name)
            && !name.starts_with(beginning)
            && !named.iter().any(|other| other == name)
    };
    let pairs = from.iter().filter(|(name, _)| goes(name));
    let mut to = HeaderMap::with_capacity(from.len() + 8);
    for (name, value) in pairs {
        to.append(name.clone(), value.clone());
    }
    to
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate {
            prefix: "/api/sessions/s1/ports/8080".to_owned(),
            port: 8080,
            from: Some([192, 0, 2, 7].into()),
            secure: true,
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn shown(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn the_program_learns_no_credentials_and_no_lies() {
        let told = to_program(
            &gate(),
            &headers(&[
                ("host", "atoll.example"),
                ("authorization", "Bearer secret"),
                ("x-api-key", "secret"),
                ("proxy-authorization", "Basic secret"),
                ("cookie", "ours=secret; theirs=secret"),
                ("origin", "https://atoll.example"),
                ("referer", "https://atoll.example/secret"),
                ("x-forwarded-for", "203.0.113.1"),
                ("x-forwarded-user", "root"),
                ("forwarded", "for=203.0.113.1"),
                ("connection", "close, X-Secret"),
                ("x-secret", "1"),
                ("te", "trailers"),
                ("transfer-encoding", "chunked"),
                ("upgrade", "h2c"),
                ("accept", "text/html"),
                ("accept", "*/*"),
                ("content-length", "3"),
            ]),
        );

        assert_eq!(
            shown(&told),
            [
                "accept: */*",
                "accept: text/html",
                "content-length: 3",
                "host: localhost:8080",
                "origin: http://localhost:8080",
                "x-forwarded-for: 192.0.2.7",
                "x-forwarded-host: atoll.example",
                "x-forwarded-prefix: /api/sessions/s1/ports/8080",
                "x-forwarded-proto: https",
            ]
        );
    }

    #[test]
    fn the_program_changes_nothing_beyond_its_own_answer() {
        let told = from_program(
            &gate(),
            &headers(&[
                ("content-type", "text/html"),
                ("content-security-policy", "default-src 'self'"),
                ("service-worker-allowed", "/"),
                ("clear-site-data", "\"*\""),
                ("strict-transport-security", "max-age=1"),
                ("access-control-allow-origin", "*"),
                ("access-control-allow-credentials", "true"),
                ("www-authenticate", "Basic"),
                ("alt-svc", "h3=\":1\""),
                ("refresh", "0; url=https://evil.example"),
                ("location", "https://evil.example"),
                ("x-request-id", "forged"),
                ("x-atoll-port", "1"),
                ("connection", "x-other"),
                ("x-other", "1"),
                ("x-own", "1"),
            ]),
        );

        assert_eq!(
            shown(&told),
            [
                "content-security-policy: default-src 'self'",
                &format!("content-security-policy: {POLICY}"),
                "content-type: text/html",
                "cross-origin-resource-policy: same-origin",
                "referrer-policy: no-referrer",
                "x-atoll-port: 8080",
                "x-content-type-options: nosniff",
                "x-own: 1",
            ]
        );
    }
}
