//! How values are written in columns: times as microseconds, words and structures as JSON.

use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};

use crate::{Error, Result};

pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("a plain structure is JSON")
}

pub(crate) fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::row(what, error))
}

/// A unit variant as its bare word, so that a person reading the file sees `ready`.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    json(value).trim_matches('"').to_owned()
}

pub(crate) fn from_word<T: DeserializeOwned>(what: &str, word: &str) -> Result<T> {
    serde_json::from_value(serde_json::Value::from(word)).map_err(|error| Error::row(what, error))
}

pub(crate) fn from_micros(what: &str, micros: i64) -> Result<Timestamp> {
    Timestamp::from_microsecond(micros).map_err(|error| Error::row(what, error))
}
