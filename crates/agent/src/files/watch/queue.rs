//! What is to be told, up to a bound. Whoever fills it never waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use atoll_agent_protocol::message::{Change, ChangeKind};
use tokio::sync::Notify;

/// Changes kept for a slow host, and their bytes.
const MAX_CHANGES: usize = 8192;
const MAX_BYTES: usize = 2 << 20;

#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    changes: VecDeque<Change>,
    bytes: usize,
    /// Takes what happens; not before everything is watched.
    open: bool,
    /// Nothing more will come.
    closed: bool,
}

impl Queue {
    /// Begins to take what happens.
    pub(super) fn open(&self) {
        self.lock().open = true;
    }

    /// Takes nothing until [`Self::overflow`].
    pub(super) fn shut(&self) {
        self.lock().open = false;
    }

    /// Nothing more will come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.shared.changed.notify_one();
    }

    /// Something happened. What cannot be kept is told as an overflow, with all that waited.
    pub(super) fn push(&self, change: Change) {
        let mut inner = self.lock();
        let kind = change.kind();
        // That something is not watched must be known whenever it was found.
        if !inner.open && kind != ChangeKind::Unwatched {
            return;
        }
        let repeated = matches!(kind, ChangeKind::Written | ChangeKind::Attributes)
            && inner.changes.back() == Some(&change);
        if repeated {
            return;
        }
        let bytes = weight(&change);
        if inner.changes.len() >= MAX_CHANGES || inner.bytes + bytes > MAX_BYTES {
            inner.lose();
        } else {
            inner.bytes += bytes;
            inner.changes.push_back(change);
        }
        drop(inner);
        self.shared.changed.notify_one();
    }

    /// Events were lost; what happens from now on is taken.
    pub(super) fn overflow(&self) {
        let mut inner = self.lock();
        inner.open = true;
        inner.lose();
        drop(inner);
        self.shared.changed.notify_one();
    }

    /// The next thing to tell; none when nothing more will come.
    pub(super) async fn next(&self) -> Option<Change> {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            {
                let mut inner = self.lock();
                if let Some(change) = inner.changes.pop_front() {
                    inner.bytes -= weight(&change);
                    return Some(change);
                }
                if inner.closed {
                    return None;
                }
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// One overflow in place of all that waits, but for what would not be told again.
    fn lose(&mut self) {
        let unwatched = |change: &Change| change.kind() == ChangeKind::Unwatched;
        let kept = self.changes.iter().find(|change| unwatched(change)).cloned();
        self.changes = [Some(Change::default()), kept].into_iter().flatten().collect();
        self.bytes = self.changes.iter().map(weight).sum();
    }
}

fn weight(change: &Change) -> usize {
    change.path.len() + change.from.len() + 96
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: ChangeKind, path: &str) -> Change {
        Change { kind: kind.into(), path: path.into(), ..Change::default() }
    }

    async fn all(queue: &Queue) -> Vec<(ChangeKind, String)> {
        queue.close();
        let mut all = Vec::new();
        while let Some(change) = queue.next().await {
            all.push((change.kind(), String::from_utf8(change.path).unwrap()));
        }
        all
    }

    #[tokio::test]
    async fn what_happens_again_and_again_is_told_once() {
        let queue = Queue::default();
        queue.open();
        for path in ["a", "a", "b", "a"] {
            queue.push(change(ChangeKind::Written, path));
        }

        let told = [("a"), ("b"), ("a")].map(|path| (ChangeKind::Written, path.to_owned()));
        assert_eq!(all(&queue).await, told);
    }

    #[tokio::test]
    async fn more_than_fits_is_an_overflow_and_what_comes_after() {
        let queue = Queue::default();
        queue.push(change(ChangeKind::Created, "before"));
        queue.push(change(ChangeKind::Unwatched, "far"));
        queue.open();
        for number in 0..MAX_CHANGES {
            queue.push(change(ChangeKind::Created, &number.to_string()));
        }
        queue.push(change(ChangeKind::Removed, "after"));

        let told = [
            (ChangeKind::Overflow, String::new()),
            (ChangeKind::Unwatched, "far".to_owned()),
            (ChangeKind::Removed, "after".to_owned()),
        ];
        assert_eq!(all(&queue).await, told);
    }

    #[tokio::test]
    async fn long_names_fill_it_too() {
        let queue = Queue::default();
        queue.open();
        for _ in 0..=MAX_BYTES / 4096 {
            queue.push(change(ChangeKind::Created, &"x".repeat(4096)));
        }

        assert_eq!(all(&queue).await[0].0, ChangeKind::Overflow);
    }
}
