//! The time, as exactly as the records keep it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Now, in whole microseconds: what is told is what will be read again.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

/// The time that far from now; none past the end of all calendars.
pub(crate) fn in_future(span: Duration) -> Option<Timestamp> {
    now().checked_add(SignedDuration::try_from(span).ok()?).ok()
}

/// The time that long ago; none before the beginning of all calendars.
pub(crate) fn ago(span: Duration) -> Option<Timestamp> {
    now().checked_sub(SignedDuration::try_from(span).ok()?).ok()
}
