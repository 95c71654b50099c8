//! What sandboxes can be made of.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use atoll_types::{
    environment::{EnvironmentInfo, EnvironmentList, PrepareEvent},
    error::ErrorBody,
};
use futures_util::Stream;
use hyper::{Method, header::HeaderMap};

use crate::{
    Client, body,
    error::{Error, Refused, Result},
    files::Download,
    query,
    sse::{Message, Parser},
};

/// How far getting something is: steps, then [`PrepareEvent::Ready`] or an error. Dropping it gives
/// it up.
#[derive(Debug)]
pub struct Preparation {
    bytes: Download,
    parser: Parser,
    over: bool,
}

impl Client {
    /// What sandboxes can be made of.
    pub async fn environments(&self) -> Result<Vec<EnvironmentInfo>> {
        let EnvironmentList { environments } = self.get("/api/environments").await?;
        Ok(environments)
    }

    /// Gets what an environment needs and the server lacks. Needs the `admin` scope.
    pub async fn prepare(&self, environment: &str, engine: Option<&str>) -> Result<Preparation> {
        let path = format!("/api/environments/{}/prepare", query::part(environment));
        let target = query::with(&path, engine.map(|engine| ("engine", engine)));
        let answer = self.send(Method::POST, &target, HeaderMap::new(), body::empty()).await?;
        Ok(Preparation {
            bytes: Download(answer.into_body()),
            parser: Parser::default(),
            over: false,
        })
    }
}

impl Preparation {
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<PrepareEvent>> {
        loop {
            match self.parser.next() {
                Ok(Some(message)) => return Poll::Ready(read(&message)),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(Error::Garbled(error.to_string()))),
            }
            match ready!(Pin::new(&mut self.bytes).poll_next(context)) {
                Some(Ok(bytes)) => self.parser.push(&bytes),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Err(Error::broken("the events ended too early"))),
            }
        }
    }
}

impl Stream for Preparation {
    type Item = Result<PrepareEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let event = ready!(self.poll_event(context));
        self.over = !matches!(event, Ok(PrepareEvent::Step { .. }));
        Poll::Ready(Some(event))
    }
}

fn read(message: &Message) -> Result<PrepareEvent> {
    let garbled = |error: serde_json::Error| Error::Garbled(error.to_string());
    if message.kind == "error" {
        let body: ErrorBody = serde_json::from_str(&message.data).map_err(garbled)?;
        return Err(Refused::new(200, body.error).into());
    }
    serde_json::from_str(&message.data).map_err(garbled)
}
