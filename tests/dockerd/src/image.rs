//! The image sandboxes of tests start from: no registry is needed, or asked.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{IMAGE, ask};

pub(crate) fn is_here(socket: &Path, name: &str) -> bool {
    let images = ask::get(socket, "/images/json");
    let named = |image: &serde_json::Value| {
        image["RepoTags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == name))
    };
    images.as_array().is_some_and(|images| images.iter().any(named))
}

/// Makes an image of a root file system.
pub(crate) fn import(socket: &Path, image: &str, root: &Path) {
    let (name, tag) = image.rsplit_once(':').expect("it has a tag");
    let mut tar = Command::new("tar")
        .args(["--numeric-owner", "--exclude=./dev/*", "--exclude=./proc/*", "-C"])
        .arg(root)
        .args(["-c", "."])
        .stdout(Stdio::piped())
        .spawn()
        .expect("tar starts");
    let status = Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--output", "/dev/null", "--unix-socket"])
        .arg(socket)
        .args(["--request", "POST", "--upload-file", "-"])
        .arg(format!("http://docker/images/create?fromSrc=-&repo={name}&tag={tag}"))
        .stdin(tar.stdout.take().expect("it is piped"))
        .status()
        .expect("curl starts");
    let packed = tar.wait().expect("it is our child");
    assert!(
        status.success() && packed.success() && is_here(socket, image),
        "the image is not imported"
    );
}

/// Commits a container that was never started, with changes.
pub(crate) fn change(socket: &Path, name: &str, lines: &[&str]) {
    let body = serde_json::json!({ "Image": IMAGE, "Cmd": ["/bin/true"] }).to_string();
    let (status, answer) = ask::post(socket, "/containers/create", &body);
    assert_eq!(status, 201, "{answer}");
    let made: serde_json::Value = serde_json::from_str(&answer).expect("the daemon writes JSON");
    let id = made["Id"].as_str().expect("it has an id");
    let changes = lines.iter().flat_map(|line| ["&changes=".to_owned(), escaped(line)]);
    let changes: String = changes.collect();
    let (repository, tag) = name.split_once(':').unwrap_or((name, "latest"));
    let path = format!("/commit?container={id}&repo={repository}&tag={tag}{changes}");
    let (status, answer) = ask::post(socket, &path, "{}");
    assert_eq!(status, 201, "{answer}");
    ask::delete(socket, &format!("/containers/{id}?force=1&v=1"));
}

/// Sends an image to the registry it is named after.
pub(crate) fn push(socket: &Path, image: &str, login: Option<(&str, &str)>) {
    let (name, tag) = image.rsplit_once(':').expect("it has a tag");
    let (user, password) = login.unwrap_or_default();
    let shown = serde_json::json!({ "username": user, "password": password }).to_string();
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--request", "POST", "--unix-socket"])
        .arg(socket)
        .args(["--header", &format!("X-Registry-Auth: {}", STANDARD.encode(shown))])
        .arg(format!("http://docker/images/{name}/push?tag={tag}"))
        .output()
        .expect("curl starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !said.contains("\"error\""), "not pushed: {said}");
}

/// Every byte as `%XX`.
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;

    text.bytes().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "%{byte:02X}");
        all
    })
}
