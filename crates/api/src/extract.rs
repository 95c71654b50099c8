//! What a path and a query name.

use atoll_types::id::{ProcessId, SessionId};
use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{error::Error, wording};

/// The session of `…/sessions/{id}/…`. A text that can be no id names no session.
#[derive(Debug)]
pub(crate) struct Session(pub(crate) SessionId);

/// The process of `…/processes/{process}/…`.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) ProcessId);

/// The port of `…/ports/{port}/…`.
#[derive(Debug)]
pub(crate) struct Port(pub(crate) u16);

/// The key of `…/keys/{key}`.
#[derive(Debug)]
pub(crate) struct Key(pub(crate) String);

/// The environment of `…/environments/{name}/…`.
#[derive(Debug)]
pub(crate) struct Name(pub(crate) String);

/// The query, understood. Unknown and malformed fields are named.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

/// `?path=`: a path inside the sandbox.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilePath {
    pub(crate) path: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Session {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let id = parameter(parts, state, "id").await?;
        id.parse().map(Self).map_err(|_| Error::not_found("no session has this id"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Process {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let id = parameter(parts, state, "process").await?;
        id.parse()
            .map(|id| Self(ProcessId(id)))
            .map_err(|_| Error::not_found("no process has this id"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Port {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let port = parameter(parts, state, "port").await?;
        // `+80` and `080` are numbers too, and no port is written so.
        let plain = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
        let port = port.parse().ok().filter(|_| plain);
        port.map(Self).ok_or_else(|| Error::invalid("a port is a number from 1 to 65535"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        parameter(parts, state, "key").await.map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        parameter(parts, state, "name").await.map(Self)
    }
}

async fn parameter<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<String, Error> {
    let parameters = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| Error::invalid("the path is not UTF-8"))?;
    let value = parameters.iter().find(|(found, _)| *found == name);
    Ok(value.map(|(_, value)| value.to_owned()).unwrap_or_default())
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        parse(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// Every `name=value` of a query, in order.
pub(crate) fn pairs(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

fn parse<T: DeserializeOwned>(query: &str) -> Result<T, Error> {
    let fields = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(fields).map_err(|error| {
        let message = wording::plain(&error.inner().to_string());
        match error.path().to_string().as_str() {
            "." | "?" => Error::invalid(format!("the query: {message}")),
            path => Error::invalid(format!("the query's `{path}`: {message}")),
        }
    })
}
