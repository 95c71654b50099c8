//! Content of any size on its way in or out.

use std::time::Duration;

use atoll_service::{ByteStream, EngineError};
use axum::{
    body::{Body, BodyDataStream},
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use crate::error::Error;

/// How long the next piece of a body may take to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A request's body as the content of a file. What does not come whole ends in an error.
pub(crate) fn incoming(body: Body) -> ByteStream {
    let pieces = stream::unfold(Some(body.into_data_stream()), |body| async {
        let mut body = body?;
        match next(&mut body).await {
            Ok(Some(piece)) => Some((Ok(piece), Some(body))),
            Ok(None) => None,
            Err(error) => Some((Err(EngineError::invalid(error.problem().message)), None)),
        }
    });
    pieces.boxed()
}

/// The next piece of a body, waited for no longer than is decent.
pub(crate) async fn next(body: &mut BodyDataStream) -> Result<Option<Bytes>, Error> {
    match tokio::time::timeout(PATIENCE, body.next()).await {
        Ok(None) => Ok(None),
        Ok(Some(Ok(piece))) => Ok(Some(piece)),
        Ok(Some(Err(_))) => Err(Error::cut_short()),
        Err(_) => Err(Error::too_slow()),
    }
}

/// A file as an answer. An error on the way breaks the connection, so that nobody takes a part for
/// the whole.
pub(crate) fn outgoing(content: ByteStream) -> Response {
    typed("application/octet-stream", content)
}

/// The same, of a kind that is known.
pub(crate) fn typed(kind: &'static str, content: ByteStream) -> Response {
    let body = Body::from_stream(content);
    let headers = [(CONTENT_TYPE.as_str(), kind), ("x-content-type-options", "nosniff")];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_coming_is_given_up() {
        let stuck = stream::iter([Ok::<_, io::Error>("begin")]).chain(stream::pending());
        let mut content = incoming(Body::from_stream(stuck));

        let first = content.next().await.unwrap().unwrap();
        let second = content.next().await.unwrap().unwrap_err();

        assert_eq!(first, "begin");
        assert_eq!(second.message(), "the body did not come in time");
        assert!(content.next().await.is_none(), "an error is final");
    }

    #[tokio::test]
    async fn a_body_that_is_cut_is_not_taken_for_whole() {
        let cut = stream::iter([Ok("begin"), Err(io::Error::other("reset"))]);
        let mut content = incoming(Body::from_stream(cut));

        assert!(content.next().await.unwrap().is_ok());
        assert!(content.next().await.unwrap().is_err());
        assert!(content.next().await.is_none());
    }
}
