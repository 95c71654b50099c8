//! Bodies of requests and answers.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use http_body_util::{
    BodyExt as _, Empty, Full, LengthLimitError, Limited, StreamBody, combinators::UnsyncBoxBody,
};
use hyper::{
    Response,
    body::{Frame, Incoming},
};
use serde::de::DeserializeOwned;

use crate::error::{Error, Refused, Result};

/// The longest answer read into memory: two streams of output at their cap, escaped and encoded.
const LONGEST: usize = 1 << 30;

/// The longest error body read.
const LONGEST_REFUSAL: usize = 256 << 10;

pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn whole(data: impl Into<Bytes>) -> Body {
    Full::new(data.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn streamed<S>(content: S) -> Body
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    StreamBody::new(content.map_ok(Frame::data)).boxed_unsync()
}

/// Lets a good answer through and turns any other into its error.
pub(crate) async fn judge(answer: Response<Incoming>) -> Result<Response<Incoming>> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let body = read(answer, LONGEST_REFUSAL).await.unwrap_or_default();
    Err(Refused::read(status.as_u16(), &body).into())
}

pub(crate) async fn json<T: DeserializeOwned>(answer: Response<Incoming>) -> Result<T> {
    let body = read(answer, LONGEST).await?;
    serde_json::from_slice(&body).map_err(|error| Error::Garbled(error.to_string()))
}

pub(crate) async fn text(answer: Response<Incoming>) -> Result<String> {
    let body = read(answer, LONGEST).await?;
    String::from_utf8(body.into()).map_err(|error| Error::Garbled(error.to_string()))
}

/// Reads an answer that says nothing, so that its connection can be used again.
pub(crate) async fn nothing(answer: Response<Incoming>) -> Result<()> {
    read(answer, LONGEST_REFUSAL).await.map(drop)
}

async fn read(answer: Response<Incoming>, longest: usize) -> Result<Bytes> {
    match Limited::new(answer.into_body(), longest).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Error::Garbled("it is longer than any answer may be".to_owned()))
        }
        Err(error) => Err(Error::Broken(error)),
    }
}
