//! What a registry is shown: from the file `docker login` writes, or from a helper it names.

use std::{collections::HashMap, io, path::Path, process::Stdio, time::Duration};

use atoll_engine::{Error, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bollard::auth::DockerCredentials;
use serde::Deserialize;
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

/// What Docker's own registry is called in that file.
const HUB: &str = "index.docker.io";
/// A helper may ask a person.
const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST: u64 = 1 << 20;

/// The part of `config.json` that is about registries.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Known {
    auths: HashMap<String, Login>,
    cred_helpers: HashMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Login {
    auth: String,
    identitytoken: Option<String>,
}

/// A helper's answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// What the registry of an image is to be shown; nothing if the file is not there or knows none.
pub(crate) async fn find(file: &Path, image: &str) -> Result<Option<DockerCredentials>> {
    let unusable = |error: io::Error| {
        Error::invalid("the file of registry credentials cannot be used")
            .hint("see `engines.docker.credentials`")
            .because(error)
    };
    let text = match std::fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(found) if found.len() > LONGEST => return Err(unusable(io::Error::other("too long"))),
        found => found.and_then(|_| std::fs::read_to_string(file)).map_err(unusable)?,
    };
    let known: Known = serde_json::from_str(&text).map_err(|error| unusable(error.into()))?;
    let registry = registry(image);
    let helper = known.cred_helpers.iter().find(|(name, _)| host(name) == registry);
    match helper.map(|(_, helper)| helper).or(known.creds_store.as_ref()) {
        Some(helper) => Ok(ask(helper, registry).await.map_err(unusable)?),
        None => known
            .auths
            .iter()
            .find(|(name, _)| host(name) == registry)
            .and_then(|(_, login)| login.shown(registry).transpose())
            .transpose()
            .map_err(unusable),
    }
}

impl Login {
    fn shown(&self, registry: &str) -> io::Result<Option<DockerCredentials>> {
        let serveraddress = Some(registry.to_owned());
        if let Some(token) = self.identitytoken.clone().filter(|token| !token.is_empty()) {
            let identitytoken = Some(token);
            return Ok(Some(DockerCredentials {
                identitytoken,
                serveraddress,
                ..Default::default()
            }));
        }
        if self.auth.is_empty() {
            return Ok(None);
        }
        let decoded = STANDARD.decode(&self.auth).map_err(|_| io::Error::other("no base64"))?;
        let text = String::from_utf8(decoded).map_err(|_| io::Error::other("no text"))?;
        let (name, password) = text.split_once(':').ok_or_else(|| io::Error::other("no pair"))?;
        Ok(Some(DockerCredentials {
            username: Some(name.to_owned()),
            password: Some(password.trim_end_matches('\0').to_owned()),
            serveraddress,
            ..Default::default()
        }))
    }
}

/// Asks a helper, a program of the machine named `docker-credential-…`.
async fn ask(helper: &str, registry: &str) -> io::Result<Option<DockerCredentials>> {
    if !helper.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return Err(io::Error::other("a helper's name is letters, digits and dashes"));
    }
    let server = if registry == HUB { "https://index.docker.io/v1/" } else { registry };
    let mut child = Command::new(format!("docker-credential-{helper}"))
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(server.as_bytes()).await?;
    }
    let output = timeout(PATIENCE, child.wait_with_output()).await??;
    if !output.status.success() {
        // It knows none, and says so on standard output.
        return Ok(None);
    }
    let Answer { username, secret } = serde_json::from_slice(&output.stdout)?;
    let serveraddress = Some(registry.to_owned());
    Ok(Some(if username == "<token>" {
        DockerCredentials { identitytoken: Some(secret), serveraddress, ..Default::default() }
    } else {
        let (username, password) = (Some(username), Some(secret));
        DockerCredentials { username, password, serveraddress, ..Default::default() }
    }))
}

/// The registry an image is at.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => match first {
            "docker.io" | "registry-1.docker.io" => HUB,
            first => first,
        },
        _ => HUB,
    }
}

/// A key of the file without what is around the host.
fn host(key: &str) -> &str {
    let key = key.strip_prefix("https://").or(key.strip_prefix("http://")).unwrap_or(key);
    match key.split('/').next().unwrap_or(key) {
        "docker.io" | "registry-1.docker.io" => HUB,
        host => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn found(json: &str, image: &str) -> Result<Option<DockerCredentials>> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.json");
        std::fs::write(&file, json).unwrap();
        find(&file, image).await
    }

    #[tokio::test]
    async fn a_login_is_found_by_its_registry() {
        let json = r#"{"auths": {"localhost:5000": {"auth": "bWU6c2VjcmV0OjE="},
            "https://index.docker.io/v1/": {"identitytoken": "token"}, "empty.example": {}}}"#;

        let own = found(json, "localhost:5000/a:b").await.unwrap().unwrap();
        assert_eq!(own.username.as_deref(), Some("me"));
        assert_eq!(own.password.as_deref(), Some("secret:1"));
        let hub = found(json, "python:3").await.unwrap().unwrap();
        assert_eq!(hub.identitytoken.as_deref(), Some("token"));
        for other in ["other.example/a", "empty.example/a"] {
            assert!(found(json, other).await.unwrap().is_none(), "{other}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_none_is_an_error_and_one_that_is_not_there_is_not() {
        for json in ["no", r#"{"auths": {"x.example": {"auth": "%"}}}"#] {
            let error = found(json, "x.example/a").await.unwrap_err();
            assert!(!error.message().contains('/'), "{error}");
        }
        assert!(find(Path::new("/nowhere/config.json"), "a").await.unwrap().is_none());
        assert!(found(r#"{"credsStore": "../x"}"#, "a").await.is_err());
    }

    #[test]
    fn an_image_without_a_host_is_at_dockers_own_registry() {
        for (image, expected) in [
            ("python", HUB),
            ("me/python:3", HUB),
            ("docker.io/me/python", HUB),
            ("localhost/a", "localhost"),
            ("ghcr.io/a/b", "ghcr.io"),
            ("localhost:5000/a", "localhost:5000"),
        ] {
            assert_eq!(registry(image), expected, "{image}");
        }
    }
}
