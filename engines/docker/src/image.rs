//! Images: which one is meant, and what of its own settings a sandbox takes over.

use atoll_engine::{Error, ErrorKind, Image, Result};
use bollard::models::ImageInspect;

use crate::daemon::{Daemon, failed, status};

/// Bytes of variables an image may bring along.
const MOST_ENV: usize = 64 << 10;

/// What is taken from an image. All else it says, such as what to run and as whom, is not asked
/// for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The image's own name for itself: a tag may be another image the next moment.
    pub(crate) id: String,
    pub(crate) env: Vec<String>,
    /// Where it wants volumes, which it does not get.
    pub(crate) volumes: Vec<String>,
}

/// Looks an image up; one that is not here is [`NotFound`](ErrorKind::NotFound).
pub(crate) async fn find(daemon: &Daemon, image: &Image) -> Result<Facts> {
    let name = name(image)?;
    match daemon.client().await?.inspect_image(&name).await {
        Ok(found) => facts(found),
        Err(error) if status(&error) == Some(404) => Err(missing(image).because(error)),
        Err(error) => Err(failed("look up the image", error)),
    }
}

fn missing(image: &Image) -> Error {
    let message = match image {
        Image::Reference(name) => format!("the image `{name}` is not here yet"),
        Image::Dockerfile(_) => "the environment's image is not built yet".to_owned(),
    };
    Error::not_found(message).hint("get it with `atoll env pull NAME`")
}

/// What the daemon calls an image.
pub(crate) fn name(image: &Image) -> Result<String> {
    match image {
        Image::Reference(name) if is_reference(name) => Ok(name.clone()),
        Image::Reference(_) => {
            Err(Error::invalid("the image is no reference, as `python:3.12-slim` is"))
        }
        Image::Dockerfile(directory) => {
            let path = directory.as_os_str().as_encoded_bytes();
            Ok(format!("atoll-built:{:016x}", fnv(path)))
        }
    }
}

/// Whether a text can be the name of an image: nothing that would mean something in a URL.
fn is_reference(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    (1..=512).contains(&text.len())
        && text.chars().all(plain)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !text.contains("..")
        && !text.contains("//")
}

fn facts(found: ImageInspect) -> Result<Facts> {
    let id = found.id.ok_or_else(|| Error::internal("the daemon names no image"))?;
    let config = found.config.unwrap_or_default();
    let env = config.env.unwrap_or_default();
    if env.iter().map(String::len).sum::<usize>() > MOST_ENV {
        return Err(Error::new(ErrorKind::Invalid, "the image has too many variables"));
    }
    let usable = |pair: &String| {
        pair.split_once('=').is_some_and(|(name, _)| !name.is_empty()) && !pair.contains('\0')
    };
    Ok(Facts {
        id,
        env: env.into_iter().filter(usable).collect(),
        volumes: config.volumes.unwrap_or_default(),
    })
}

/// A hash that is the same in every build: names are made of it.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_a_name_and_nothing_else() {
        for good in ["python", "python:3.12-slim", "localhost:5000/a/b:c", "a@sha256:00ff"] {
            assert!(is_reference(good), "{good}");
        }
        for bad in ["", "../x", "a/../b", "a?b", "a b", "a#b", "-a", "/a", "a//b", "a%2fb", "ä"] {
            assert!(!is_reference(bad), "{bad}");
        }
    }

    #[test]
    fn variables_that_are_none_are_left_out() {
        let config = bollard::models::ImageConfig {
            env: Some(["A=1", "=x", "B", "C=\0"].map(str::to_owned).to_vec()),
            ..Default::default()
        };
        let inspect =
            ImageInspect { id: Some("x".into()), config: Some(config), ..Default::default() };

        assert_eq!(facts(inspect).unwrap().env, ["A=1"]);
    }
}
