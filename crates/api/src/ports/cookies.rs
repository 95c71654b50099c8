//! Cookies of programs in sandboxes, kept apart from all others of this server's name.
//!
//! Browsers share cookies between everything that has a host's name, whatever its port. So a
//! program's cookie gets a name that says what it is and a path that only its own port has; and
//! only cookies named so are given to a program.

use axum::http::{HeaderMap, HeaderValue, header::COOKIE};

use super::Gate;

const MARK: &str = "atoll-port-";

/// Attributes a program may set; the others say where a cookie goes, which is not its to say.
const KEPT: &[&str] = &["expires", "max-age", "httponly", "secure"];

/// The program's own cookies of a request.
pub(super) fn to_program(headers: &HeaderMap) -> Option<HeaderValue> {
    let own: Vec<&str> = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().strip_prefix(MARK))
        .collect();
    if own.is_empty() { None } else { HeaderValue::try_from(own.join("; ")).ok() }
}

/// A cookie that a program sets, for its own port only; none if it has no name.
pub(super) fn to_client(gate: &Gate, cookie: &HeaderValue) -> Option<HeaderValue> {
    let mut parts = cookie.to_str().ok()?.split(';').map(str::trim);
    let (name, value) = parts.next()?.split_once('=')?;
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    let mut told = format!("{MARK}{name}={}", value.trim());
    for attribute in parts {
        let name = attribute.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
        if KEPT.contains(&name.as_str()) {
            told = format!("{told}; {attribute}");
        }
    }
    HeaderValue::try_from(format!("{told}; Path={}/; SameSite=Strict", gate.prefix)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cookie: &str) -> Option<String> {
        let prefix = "/api/sessions/s1/ports/80".to_owned();
        let gate = Gate { prefix, port: 80, from: None, secure: false };
        let told = to_client(&gate, &cookie.parse().unwrap())?;
        Some(told.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_cookie_is_for_its_own_port_only() {
        let own = "Path=/api/sessions/s1/ports/80/; SameSite=Strict";
        for (cookie, told) in [
            ("a=1", format!("atoll-port-a=1; {own}")),
            ("a=", format!("atoll-port-a=; {own}")),
            ("a=b=c", format!("atoll-port-a=b=c; {own}")),
            ("a=1; Path=/; Domain=example; SameSite=None", format!("atoll-port-a=1; {own}")),
            ("a=1; PATH=/api; path=/", format!("atoll-port-a=1; {own}")),
            (
                "__Host-a=1; Secure; HttpOnly; Max-Age=60",
                format!("atoll-port-__Host-a=1; Secure; HttpOnly; Max-Age=60; {own}"),
            ),
            ("a=1; Partitioned; Unknown=1", format!("atoll-port-a=1; {own}")),
        ] {
            assert_eq!(set(cookie), Some(told), "{cookie}");
        }
    }

    #[test]
    fn what_has_no_name_is_no_cookie() {
        for cookie in ["", "a", "=1", " = ", ";a=1"] {
            assert_eq!(set(cookie), None, "{cookie}");
        }
    }

    #[test]
    fn only_a_programs_own_cookies_come_back() {
        let mut headers = HeaderMap::new();
        assert_eq!(to_program(&headers), None);
        headers.append(COOKIE, "session=secret; atoll-port-a=1".parse().unwrap());
        headers.append(COOKIE, "atoll-port-b=2;x=atoll-port-c=3".parse().unwrap());

        assert_eq!(to_program(&headers).unwrap(), "a=1; b=2");
    }
}
