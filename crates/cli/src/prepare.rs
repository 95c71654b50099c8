//! Getting an image, shown as it comes.

use std::collections::HashMap;

use atoll_client::Client;
use atoll_types::{
    environment::PrepareEvent,
    session::{CreateSession, Session},
};
use futures_util::StreamExt as _;

use crate::{invocation::Invocation, printer::Printer, progress::Progress};

/// Gets what an environment needs.
pub(crate) async fn prepare(
    client: &Client,
    environment: &str,
    engine: Option<&str>,
    printer: Printer,
) -> Result<(), atoll_client::Error> {
    let mut steps = client.prepare(environment, engine).await?;
    let progress = Progress::new(printer, environment, Some(0));
    let mut parts = Parts::default();
    while let Some(step) = steps.next().await {
        match step? {
            PrepareEvent::Step { part, doing, done, total } => {
                parts.note(part, &doing, done, total);
                let (done, total) = parts.sum();
                progress.set(done, total, &doing);
            }
            PrepareEvent::Ready => break,
        }
    }
    Ok(())
}

/// Makes a session; if its image is missing and somebody looks on, gets that first.
pub(crate) async fn create_session(
    client: &Client,
    request: &CreateSession,
    invocation: &Invocation,
) -> Result<Session, atoll_client::Error> {
    let printer = invocation.printer;
    match client.create_session(request).await {
        Err(error) if error.code() == Some("image_missing") && printer.progress() => {
            let usual = &invocation.settings().sessions.environment;
            let environment = request.environment.as_ref().unwrap_or(usual);
            prepare(client, environment, request.engine.as_deref(), printer).await?;
            client.create_session(request).await
        }
        made => made,
    }
}

/// How much of each part has come; a part is told of more than once, and as more than one thing.
#[derive(Debug, Default)]
struct Parts(HashMap<String, (u64, u64)>);

impl Parts {
    fn note(&mut self, part: Option<String>, doing: &str, done: Option<u64>, total: Option<u64>) {
        let Some(part) = part else { return };
        match (doing, done, total) {
            ("Downloading", Some(done), Some(total)) => drop(self.0.insert(part, (done, total))),
            ("Download complete" | "Pull complete", ..) => {
                if let Some((done, total)) = self.0.get_mut(&part) {
                    *done = *total;
                }
            }
            _ => {}
        }
    }

    fn sum(&self) -> (u64, u64) {
        let add = |(done, total): (u64, u64), part: &(u64, u64)| {
            (done.saturating_add(part.0.min(part.1)), total.saturating_add(part.1))
        };
        self.0.values().fold((0, 0), add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_once_and_to_their_end() {
        let mut parts = Parts::default();
        let step = |parts: &mut Parts, part: &str, doing: &str, done, total| {
            parts.note(Some(part.to_owned()), doing, done, total);
        };

        step(&mut parts, "a", "Downloading", Some(10), Some(100));
        step(&mut parts, "a", "Downloading", Some(30), Some(100));
        step(&mut parts, "b", "Downloading", Some(70), Some(50));
        assert_eq!(parts.sum(), (80, 150));

        step(&mut parts, "a", "Download complete", None, None);
        step(&mut parts, "a", "Extracting", Some(1), Some(100));
        step(&mut parts, "c", "Pull complete", None, None);
        assert_eq!(parts.sum(), (150, 150));
    }
}
