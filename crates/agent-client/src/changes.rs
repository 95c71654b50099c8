//! What an agent sees happen to files.

use std::sync::Arc;

use atoll_agent_protocol::{
    message::{self, ChangeKind, request::Call, response::Answer},
    mux::Stream,
};
use atoll_engine::{Change, Changes, Result};
use futures_util::{StreamExt as _, stream};

use crate::{
    failure,
    files::checked,
    line::{self, within},
    sandbox::Inner,
    search::is_path,
};

/// How long all there is may take to be watched.
const BEGIN: std::time::Duration = std::time::Duration::from_mins(1);

pub(crate) async fn watch(inner: &Arc<Inner>, path: &str, recursive: bool) -> Result<Changes> {
    let call = Call::Watch(message::Watch { path: checked(path)?.path, recursive });
    let begun = within(BEGIN, async {
        let stream = inner.flows.begin(call).await?;
        stream.finish();
        match line::answer(&stream).await? {
            Answer::Done(_) => Ok(stream),
            _ => Err(failure::nonsense()),
        }
    });
    let stream = inner.living(begun).await?;
    let inner = Arc::clone(inner);
    let changes = stream::unfold(Some(stream), move |stream| {
        let inner = Arc::clone(&inner);
        async move {
            let stream = stream?;
            match inner.living(next(&stream)).await {
                Ok(None) => None,
                Ok(Some(change)) => Some((Ok(change), Some(stream))),
                Err(error) => Some((Err(error), None)),
            }
        }
    });
    Ok(changes.boxed())
}

async fn next(stream: &Stream) -> Result<Option<Change>> {
    match line::next(stream).await? {
        None => Ok(None),
        Some(Answer::Change(change)) => read(&change).map(Some),
        Some(_) => Err(failure::nonsense()),
    }
}

fn read(change: &message::Change) -> Result<Change> {
    let kind = ChangeKind::try_from(change.kind).map_err(|_| failure::nonsense())?;
    let directory = change.directory;
    let text = |bytes: &[u8]| {
        let path = String::from_utf8_lossy(bytes).into_owned();
        is_path(bytes).then_some(path).ok_or_else(failure::nonsense)
    };
    let path = || text(&change.path);
    Ok(match kind {
        ChangeKind::Overflow => Change::Overflow,
        ChangeKind::Created => Change::Created { path: path()?, directory },
        ChangeKind::Written => Change::Written { path: path()? },
        ChangeKind::Removed => Change::Removed { path: path()?, directory },
        ChangeKind::Moved => Change::Moved { from: text(&change.from)?, path: path()?, directory },
        ChangeKind::Attributes => Change::Attributes { path: path()?, directory },
        ChangeKind::Unwatched => Change::Unwatched { path: path()? },
    })
}
