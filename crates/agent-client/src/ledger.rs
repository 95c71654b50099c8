//! The processes of a sandbox that this host knows, and what became of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use atoll_agent_protocol::message::Ended;
use atoll_engine::{Outcome, ProcessId};
use tokio::sync::watch;

use crate::{note::Note, verdict::Asked};

/// Ended processes that are remembered.
const REMEMBERED: usize = 1024;

/// One process. Whoever asks how it ended gets the same answer.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) id: ProcessId,
    pub(crate) note: Note,
    /// Why this host wants it to end; the first reason counts.
    asked: Mutex<Option<Asked>>,
    /// What an agent has said of its end, to whomever.
    heard: watch::Sender<Option<Ended>>,
    outcome: watch::Sender<Option<Outcome>>,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<BTreeMap<ProcessId, Arc<Watched>>>);

/// An agent used one number for two processes.
#[derive(Debug)]
pub(crate) struct Taken;

impl Ledger {
    pub(crate) fn find(&self, id: ProcessId) -> Option<Arc<Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Writes a process down; true if it is new here.
    pub(crate) fn enter(&self, id: ProcessId, note: Note) -> Result<(Arc<Watched>, bool), Taken> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = entries.get(&id) {
            return if known.note == note { Ok((Arc::clone(known), false)) } else { Err(Taken) };
        }
        let watched = Arc::new(Watched::new(id, note));
        entries.insert(id, Arc::clone(&watched));
        if entries.len() > REMEMBERED {
            let oldest = entries.values().find(|entry| entry.outcome().is_some()).map(|e| e.id);
            oldest.map(|id| entries.remove(&id));
        }
        Ok((watched, true))
    }
}

impl Watched {
    fn new(id: ProcessId, note: Note) -> Self {
        Self {
            id,
            note,
            asked: Mutex::new(None),
            heard: watch::Sender::new(None),
            outcome: watch::Sender::new(None),
        }
    }

    pub(crate) fn asked(&self) -> Option<Asked> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ask(&self, asked: Asked) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(asked);
    }

    /// Passes on what an agent said of its end.
    pub(crate) fn hear(&self, ended: Ended) {
        self.heard.send_if_modified(|heard| {
            let first = heard.is_none();
            heard.get_or_insert(ended);
            first
        });
    }

    pub(crate) async fn heard(&self) -> Ended {
        known(&self.heard).await
    }

    /// The verdict, once and for all.
    pub(crate) fn settle(&self, outcome: Outcome) {
        self.outcome.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(outcome);
            first
        });
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.outcome.borrow().clone()
    }

    pub(crate) async fn settled(&self) -> Outcome {
        known(&self.outcome).await
    }
}

async fn known<T: Clone>(value: &watch::Sender<Option<T>>) -> T {
    let mut receiver = value.subscribe();
    let found = receiver.wait_for(Option::is_some).await.expect("its sender is borrowed here");
    found.clone().expect("that was waited for")
}
