//! A private server ends when nobody needs it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use atoll_service::Service;
use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};

/// How often to look.
const AGAIN: Duration = Duration::from_secs(1);

/// Counts requests under way. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Mutex<Under>>);

#[derive(Debug)]
struct Under {
    way: usize,
    last: Instant,
}

/// One request; dropping it ends it.
#[derive(Debug)]
struct Busy(Activity);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Under { way: 0, last: Instant::now() })))
    }

    fn begin(&self) -> Busy {
        self.change(|under| under.way += 1);
        Busy(self.clone())
    }

    /// How long nothing has been asked; none while something is.
    fn quiet(&self) -> Option<Duration> {
        let under = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (under.way == 0).then(|| under.last.elapsed())
    }

    fn change(&self, how: impl FnOnce(&mut Under)) {
        let mut under = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        how(&mut under);
        under.last = Instant::now();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|under| under.way -= 1);
    }
}

/// The router, with its requests counted until their answers begin. Answers that go on for long
/// are about sessions, which are counted by themselves.
pub(super) fn watched(router: Router, activity: Activity) -> Router {
    router.layer(middleware::from_fn_with_state(activity, count))
}

async fn count(State(activity): State<Activity>, request: Request, next: Next) -> Response {
    let _busy = activity.begin();
    next.run(request).await
}

/// Returns when there has been no session and no request for so long; never, if none is said.
pub(super) async fn wait(service: &Service, activity: &Activity, most: Option<Duration>) {
    let Some(most) = most else { return std::future::pending().await };
    loop {
        tokio::time::sleep(AGAIN.min(most)).await;
        if service.live_sessions() > 0 {
            activity.change(|_| {});
        } else if activity.quiet().is_some_and(|quiet| quiet >= most) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_quiet_only_when_every_request_is_answered() {
        let activity = Activity::new();
        let (one, two) = (activity.begin(), activity.begin());

        assert_eq!(activity.quiet(), None);
        drop(one);
        assert_eq!(activity.quiet(), None);
        drop(two);
        assert!(activity.quiet().is_some());
    }
}
