//! The host's own programs, from an allow-list.
//!
//! What is not named here is not there: no `/usr/local`, `/usr/src`, `/opt`, no homes, no
//! configuration of services. What an operator wants besides is named in the environment.

use std::{
    fs,
    path::{Path, PathBuf},
};

use atoll_launcher::{Bind, Link};

use super::Parts;

/// Under `/usr`, besides everything that begins with `lib`. A compiler without its headers would
/// be there and not work.
const USR: [&str; 4] = ["bin", "include", "sbin", "share"];

/// At the top, besides everything that begins with `lib`: links into `/usr`, on most hosts.
const TOP: [&str; 2] = ["bin", "sbin"];

/// Under `/etc`: what programs need to run at all, and nothing that tells of this host's services.
const ETC: [&str; 14] = [
    "alternatives",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "os-release",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];

/// Under `/etc`, by how they begin: settings of language runtimes.
const RUNTIMES: [&str; 5] = ["R", "java-", "perl", "python3", "terminfo"];

/// Adds what this host has of the list.
pub(crate) fn host(parts: &mut Parts) {
    let paths = names("/usr", |name| USR.contains(&name) || name.starts_with("lib"))
        .chain(names("/", |name| TOP.contains(&name) || name.starts_with("lib")))
        .chain(ETC.into_iter().map(|name| Path::new("/etc").join(name)))
        .chain(names("/etc", |name| RUNTIMES.iter().any(|begin| name.starts_with(begin))));
    for path in paths {
        show(parts, &path);
    }
}

/// The list, as a person may read it.
pub(crate) fn listed() -> String {
    let usr = USR.map(|name| format!("/usr/{name}"));
    let etc = ETC.map(|name| format!("/etc/{name}"));
    let runtimes = RUNTIMES.map(|name| format!("/etc/{name}*"));
    let all: Vec<_> =
        usr.into_iter().chain(["/usr/lib*".to_owned()]).chain(etc).chain(runtimes).collect();
    all.join(" ")
}

/// Shows one path as it is on the host: a link as a link, all else by itself, read-only.
fn show(parts: &mut Parts, path: &Path) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    if found.is_symlink() {
        if let Ok(target) = fs::read_link(path) {
            parts.links.push(Link { path: path.to_owned(), target });
        }
    } else if found.is_dir() || found.is_file() {
        let (source, target) = (path.to_owned(), path.to_owned());
        parts.binds.push(Bind {
            source,
            target,
            writable: false,
            as_user: None,
            hidden: Vec::new(),
        });
    }
}

fn names(directory: &str, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = PathBuf> {
    let mut found: Vec<_> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_shown() {
        let mut parts = Parts::default();
        host(&mut parts);
        for bind in &parts.binds {
            assert_eq!(bind.source, bind.target);
            assert!(!bind.writable);
            for never in ["/usr/local", "/usr/src", "/opt", "/home", "/root", "/etc/ssl/private"] {
                assert!(!Path::new(never).starts_with(&bind.source), "{never} is under {bind:?}");
                assert!(!bind.source.starts_with(never), "{bind:?}");
            }
        }
        assert!(parts.binds.iter().any(|bind| bind.source == Path::new("/usr/bin")));
    }
}
