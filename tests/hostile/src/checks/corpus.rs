//! Paths that lead elsewhere if one lets them: what every verb that takes a path is tried with.

use crate::canary::Canary;

/// Ways to write the path of the host's secrets, and paths that are odd in themselves.
pub(super) fn odd(canary: &Canary) -> Vec<String> {
    let canary = canary.readable_path().display().to_string();
    let up = "../".repeat(20);
    vec![
        canary.clone(),
        format!("{up}{canary}"),
        format!("/{up}{canary}"),
        format!("./{up}./{canary}"),
        format!("....//....//....//{canary}"),
        up.replace('/', "\\"),
        format!("%2e%2e%2f%2e%2e%2f{canary}"),
        format!("%252e%252e%252f{canary}"),
        format!("..%c0%af..%c0%af{canary}"),
        format!("{canary}/"),
        format!("{canary}/."),
        format!("//{canary}"),
        format!("~{canary}"),
        "~root/.profile".to_owned(),
        format!("file://{canary}"),
        format!("{up}proc/self/environ"),
        "\u{ff0e}\u{ff0e}/\u{ff0e}\u{ff0e}/etc/shadow".to_owned(),
        "-rf".to_owned(),
        " ".to_owned(),
        "new\nline".to_owned(),
        "a/".repeat(1500),
    ]
}

/// A line of shell that makes links to the host's secrets, anew.
pub(super) fn make_links(canary: &Canary) -> String {
    let canary = canary.directory().display().to_string();
    format!(
        "rm -rf final private middle relative loop dangling renamed copied deep; \
         ln -s {canary}/readable final; ln -s {canary}/private private; \
         ln -s {canary} middle; ln -s ../../../../../../../..{canary} relative; \
         ln -s loop loop; ln -s {canary}/new dangling; mkdir deep; ln -s {canary} deep/0; \
         i=1; while [ $i -le 38 ]; do ln -s $((i - 1)) deep/$i; i=$((i + 1)); done"
    )
}

/// Paths through those links.
pub(super) const LINKS: [&str; 18] = [
    "final",
    "final/",
    "final/.",
    "private",
    "private/",
    "middle",
    "middle/",
    "middle/readable",
    "middle/private",
    "middle/new",
    "relative/readable",
    "relative/new",
    "loop",
    "loop/x",
    "dangling",
    "dangling/",
    "deep/38/readable",
    "deep/38/new",
];
