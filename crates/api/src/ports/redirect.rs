//! Where an answer sends its client: to another path of the same port, or nowhere.
//!
//! Clients that follow a redirect often take their headers along, a key among them.

use axum::http::HeaderValue;

use super::Gate;

/// The `Location` for the client; none if it leads away from the port.
pub(super) fn place(gate: &Gate, location: &HeaderValue) -> Option<HeaderValue> {
    let location = location.to_str().ok()?;
    // What programs read in different ways is read in none.
    if location.chars().any(|c| c.is_ascii_control() || matches!(c, '\\' | ' ')) {
        return None;
    }
    if location.is_empty() || location.starts_with(['?', '#']) {
        return HeaderValue::from_str(location).ok();
    }
    let path = match location.strip_prefix("http://").or_else(|| location.strip_prefix("https://"))
    {
        Some(rest) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            if !is_own(gate, authority) {
                return None;
            }
            if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
        }
        None if location.starts_with("//") => return None,
        None if location.starts_with('/') => location.to_owned(),
        // A path from where the request was is only safe if it does not climb.
        None => return relative(location),
    };
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let (path, rest) = path.split_at(end);
    HeaderValue::try_from(format!("{}{}{rest}", gate.prefix, flat(path))).ok()
}

/// The names under which a program knows itself.
fn is_own(gate: &Gate, authority: &str) -> bool {
    let hosts = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
    hosts.iter().any(|host| {
        authority.strip_prefix(host).is_some_and(|port| port == format!(":{}", gate.port))
    })
}

fn relative(location: &str) -> Option<HeaderValue> {
    let end = location.find(['?', '#']).unwrap_or(location.len());
    let climbs = location[..end].split('/').any(|part| is_dots(part, ".."));
    // `javascript:` and the like; a colon may only come after a slash.
    let first = location[..end].split('/').next().unwrap_or_default();
    let stays = !climbs && !first.contains(':');
    stays.then(|| HeaderValue::from_str(location).ok()).flatten()
}

/// The path without `.` and `..`, which never lead above the program's own root.
fn flat(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut last_is_directory = true;
    for part in path.split('/').skip(1) {
        last_is_directory = is_dots(part, ".") || is_dots(part, "..");
        if is_dots(part, "..") {
            parts.pop();
        } else if !is_dots(part, ".") {
            parts.push(part);
        }
    }
    let end = if last_is_directory { "/" } else { "" };
    if parts.is_empty() { "/".to_owned() } else { format!("/{}{end}", parts.join("/")) }
}

/// Browsers read `%2e` as a dot.
fn is_dots(part: &str, dots: &str) -> bool {
    part.to_ascii_lowercase().replace("%2e", ".") == dots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(location: &str) -> Option<String> {
        let gate = Gate { prefix: "/p".to_owned(), port: 80, from: None, secure: false };
        let told = place(&gate, &HeaderValue::from_str(location).unwrap())?;
        Some(told.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_path_stays_beneath_its_port() {
        for (location, told) in [
            ("/", "/p/"),
            ("/login", "/p/login"),
            ("/login/?next=/../x#y", "/p/login/?next=/../x#y"),
            ("/../../../api/keys", "/p/api/keys"),
            ("/a/./b/../c", "/p/a/c"),
            ("/a/..", "/p/"),
            ("/a/b/..", "/p/a/"),
            ("/%2e%2E/%2e./api", "/p/api"),
            ("http://localhost:80/x", "/p/x"),
            ("https://127.0.0.1:80?x", "/p/?x"),
            ("http://[::1]:80", "/p/"),
            ("login", "login"),
            ("login?next=..", "login?next=.."),
            ("a/b:c", "a/b:c"),
            ("?page=2", "?page=2"),
            ("#top", "#top"),
            ("", ""),
        ] {
            assert_eq!(led(location).as_deref(), Some(told), "{location}");
        }
    }

    #[test]
    fn what_leads_away_leads_nowhere() {
        for location in [
            "https://evil.example/",
            "//evil.example/",
            "/\\evil.example",
            "\\\\evil.example",
            "http://localhost:81/",
            "http://localhost/",
            "http://localhost:80@evil.example/",
            "http://localhost:80.evil.example/",
            "http:evil.example",
            "javascript:alert(1)",
            "data:text/html,x",
            "ftp://localhost:80/",
            "../keys",
            "a/../../x",
            "%2e%2e/keys",
            "/a b",
            "HTTP://evil.example",
        ] {
            assert_eq!(led(location), None, "{location}");
        }
    }
}
