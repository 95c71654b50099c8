//! Reads a body as JSON, within its cap, and says which field is wrong.
//!
//! The content type is not asked for: scripts forget it, and what it would protect from (a form of
//! a foreign page) is stopped by the key and by [`origin`](crate::origin).

use std::time::Duration;

use atoll_types::{e2b, execution, file, key, process, session};
use axum::{
    body::Body,
    extract::{FromRequest, Request},
    http::header::CONTENT_LENGTH,
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{error::Error, wording};

/// How long a whole body may take to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A body that may be asked for.
pub(crate) trait Payload: DeserializeOwned + Serialize {
    /// The most bytes it may have.
    const MOST: usize = 1 << 20;
}

/// Code and what it reads come in the body.
const WITH_CODE: usize = 8 << 20;

impl Payload for session::CreateSession {}
impl Payload for session::SetTimeout {}
impl Payload for execution::ExecuteRequest {
    const MOST: usize = WITH_CODE;
}
impl Payload for execution::OneShotRequest {
    const MOST: usize = WITH_CODE;
}
impl Payload for process::StartProcess {
    const MOST: usize = WITH_CODE;
}
impl Payload for process::SignalProcess {}
impl Payload for process::TerminalSize {}
impl Payload for file::MakeDirectory {}
impl Payload for file::Move {}
impl Payload for file::ChangeMode {}
impl Payload for key::CreateKey {}
impl Payload for e2b::Execute {
    const MOST: usize = WITH_CODE;
}
impl Payload for e2b::WriteFile {
    const MOST: usize = 64 << 20;
}

/// A request's body, understood.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Payload, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Error;

    async fn from_request(request: Request, _: &S) -> Result<Self, Error> {
        let announced = request
            .headers()
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > T::MOST as u64) {
            return Err(Error::too_large(T::MOST));
        }
        let body = read(request.into_body(), T::MOST).await?;
        parse(&body).map(Self).map_err(Error::invalid)
    }
}

async fn read(body: Body, most: usize) -> Result<Bytes, Error> {
    match tokio::time::timeout(PATIENCE, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Error::too_large(most)),
        Ok(Err(_)) => Err(Error::cut_short()),
        Err(_) => Err(Error::too_slow()),
    }
}

/// Understands a body, or says what is wrong with it and where.
fn parse<T: DeserializeOwned + Serialize>(body: &[u8]) -> Result<T, String> {
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err("the body must be a JSON object".to_owned());
    }
    let mut parser = serde_json::Deserializer::from_slice(body);
    let parsed: T = serde_path_to_error::deserialize(&mut parser).map_err(|error| {
        let path = error.path().to_string();
        blame(&path, error.inner())
    })?;
    parser.end().map_err(|error| blame(".", &error))?;
    if body.contains(&b'[') {
        no_list_for_an_object(&parsed, body)?;
    }
    Ok(parsed)
}

/// `field: what is wrong (line 1, column 2)`.
fn blame(path: &str, error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let place = format!(" at line {line} column {column}");
    let message = wording::plain(message.strip_suffix(&place).unwrap_or(&message));
    match path {
        "." | "?" => format!("{message} (line {line}, column {column})"),
        path => format!("`{path}`: {message} (line {line}, column {column})"),
    }
}

/// The parser takes a list for an object, its fields in order; nobody means that.
fn no_list_for_an_object(parsed: &impl Serialize, body: &[u8]) -> Result<(), String> {
    let (Ok(meant), Ok(said)) = (serde_json::to_value(parsed), serde_json::from_slice(body)) else {
        return Ok(());
    };
    match misread(&meant, &said, "") {
        Some(path) => Err(format!("`{path}`: invalid type: list, expected an object")),
        None => Ok(()),
    }
}

/// The first place beneath `path` where an object was read from a list.
fn misread(meant: &Value, said: &Value, path: &str) -> Option<String> {
    match (meant, said) {
        (Value::Object(_), Value::Array(_)) => Some(path.to_owned()),
        (Value::Object(meant), Value::Object(said)) => meant.iter().find_map(|(name, value)| {
            let dot = if path.is_empty() { "" } else { "." };
            misread(value, said.get(name)?, &format!("{path}{dot}{name}"))
        }),
        (Value::Array(meant), Value::Array(said)) => {
            let both = meant.iter().zip(said).enumerate();
            both.into_iter()
                .find_map(|(at, (meant, said))| misread(meant, said, &format!("{path}[{at}]")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
