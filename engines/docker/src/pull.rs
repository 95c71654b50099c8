//! Gets images that are not here.

use std::path::Path;

use atoll_engine::{Error, ErrorKind, Image, Progress, Report, Result};
use bollard::{
    errors::Error as Failure,
    models::{CreateImageInfo, ProgressDetail},
    query_parameters::CreateImageOptions,
};
use futures_util::StreamExt as _;

use crate::{
    build, credentials,
    daemon::{Daemon, status},
    image,
};

/// Makes sure that an image is here: pulls one that is not, and builds what may have changed.
pub(crate) async fn prepare(
    daemon: &Daemon,
    wanted: &Image,
    credentials: Option<&Path>,
    report: Report<'_>,
) -> Result<()> {
    match wanted {
        Image::Dockerfile(directory) => build::build(daemon, directory, wanted, report).await,
        Image::Reference(_) => match image::find(daemon, wanted).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                pull(daemon, &image::name(wanted)?, credentials, report).await
            }
            found => found.map(drop),
        },
    }
}

async fn pull(
    daemon: &Daemon,
    name: &str,
    credentials: Option<&Path>,
    report: Report<'_>,
) -> Result<()> {
    let login = match credentials {
        Some(file) => credentials::find(file, name).await?,
        None => None,
    };
    let known = login.is_some();
    let options = CreateImageOptions { from_image: Some(one(name)), ..Default::default() };
    let mut steps = daemon.client().await?.create_image(Some(options), None, login);
    while let Some(step) = steps.next().await {
        report(progress(step.map_err(|error| refused(name, known, error))?));
    }
    Ok(())
}

/// One image: without a tag the daemon would get them all.
fn one(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains([':', '@']) { name.to_owned() } else { format!("{name}:latest") }
}

fn progress(step: CreateImageInfo) -> Progress {
    let ProgressDetail { current, total } = step.progress_detail.unwrap_or_default();
    let bytes = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    Progress {
        part: step.id,
        doing: step.status.unwrap_or_default(),
        done: bytes(current),
        total: bytes(total).filter(|total| *total > 0),
    }
}

/// Registries say no in many words; the daemon passes them on with numbers of its own.
fn refused(name: &str, known: bool, error: Failure) -> Error {
    let words = error.to_string().to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    if says(&["unauthorized", "no basic auth", "authentication required", "denied"]) {
        let hint = if known {
            "the registry does not accept the credentials it was shown"
        } else {
            "check the name; for an image that is not public, `docker login` as the server's user, \
             or set `engines.docker.credentials`"
        };
        return Error::new(ErrorKind::Denied, format!("the registry does not give out `{name}`"))
            .hint(hint)
            .because(error);
    }
    if status(&error) == Some(404) || says(&["not found", "manifest unknown", "does not exist"]) {
        return Error::not_found(format!("the registry has no image `{name}`"))
            .hint("check its name and its tag")
            .because(error);
    }
    Error::unavailable(format!("the image `{name}` could not be pulled"))
        .hint("see whether the daemon reaches the registry: `docker pull` shows what it says")
        .because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_tag_is_its_latest() {
        assert_eq!(one("python"), "python:latest");
        assert_eq!(one("localhost:5000/python"), "localhost:5000/python:latest");
        for whole in ["python:3", "localhost:5000/a:b", "a@sha256:00"] {
            assert_eq!(one(whole), whole);
        }
    }

    #[test]
    fn a_refusal_is_told_from_an_absence_and_from_a_fault() {
        let said = |error: &str| {
            let error = Failure::DockerStreamError { error: error.to_owned() };
            refused("x", false, error).kind()
        };

        assert_eq!(said("unauthorized: authentication required"), ErrorKind::Denied);
        assert_eq!(said("manifest for x not found: manifest unknown"), ErrorKind::NotFound);
        assert_eq!(said("dial tcp: connection refused"), ErrorKind::Unavailable);
    }
}
