//! The life of a session, as a pure function.
//!
//! ```text
//!                 Created         Began
//!   creating ──────────────► ready ⇄ busy        Settled: the last execution ended
//!      │                       │       │
//!      │ Broke          Destroy└───┬───┘ Broke
//!      ▼                           │   └──────────► lost
//!   failed                         ▼
//!                             destroying ─────────► gone
//!                                       Destroyed
//! ```
//!
//! `gone`, `failed` and `lost` are final. The store applies `Began` and `Settled` itself, in the
//! transaction that writes the execution.

use atoll_types::session::State;

/// Something that happens to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LifecycleEvent {
    /// Its sandbox is there.
    Created,
    /// An execution starts.
    Began,
    /// No execution runs any more.
    Settled,
    /// Its sandbox could not be made, or went away.
    Broke,
    /// Someone, or its deadline, wants it gone.
    Destroy,
    /// Nothing of its sandbox is left.
    Destroyed,
}

/// The event makes no sense in that state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a session that is {state:?} cannot take {event:?}")]
pub struct Refused {
    pub state: State,
    pub event: LifecycleEvent,
}

/// The state that follows.
pub fn after(state: State, event: LifecycleEvent) -> Result<State, Refused> {
    use LifecycleEvent as Event;
    match (state, event) {
        (State::Creating, Event::Created) | (State::Busy, Event::Settled) => Ok(State::Ready),
        (State::Ready | State::Busy, Event::Began) => Ok(State::Busy),
        (State::Creating, Event::Broke) => Ok(State::Failed),
        (State::Ready | State::Busy, Event::Broke) => Ok(State::Lost),
        (State::Ready | State::Busy, Event::Destroy) => Ok(State::Destroying),
        (State::Destroying, Event::Destroyed) => Ok(State::Gone),
        (state, event) => Err(Refused { state, event }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::select};

    use super::*;

    const STATES: [State; 7] = [
        State::Creating,
        State::Ready,
        State::Busy,
        State::Destroying,
        State::Gone,
        State::Failed,
        State::Lost,
    ];
    const EVENTS: [LifecycleEvent; 6] = [
        LifecycleEvent::Created,
        LifecycleEvent::Began,
        LifecycleEvent::Settled,
        LifecycleEvent::Broke,
        LifecycleEvent::Destroy,
        LifecycleEvent::Destroyed,
    ];

    #[test]
    fn the_whole_table() {
        let pairs = STATES.iter().flat_map(|&state| EVENTS.map(|event| (state, event)));
        let rows = pairs.filter_map(|(state, event)| {
            let next = after(state, event).ok()?;
            Some(format!("{state:?} {event:?} -> {next:?}"))
        });

        insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"), @r"
        Creating Created -> Ready
        Creating Broke -> Failed
        Ready Began -> Busy
        Ready Broke -> Lost
        Ready Destroy -> Destroying
        Busy Began -> Busy
        Busy Settled -> Ready
        Busy Broke -> Lost
        Busy Destroy -> Destroying
        Destroying Destroyed -> Gone
        ");
    }

    proptest! {
        #[test]
        fn gone_is_final(events in prop::collection::vec(select(&EVENTS[..]), 0..40)) {
            let mut state = State::Creating;
            let mut ended = None;
            for event in events {
                state = after(state, event).unwrap_or(state);
                if let Some(end) = ended {
                    prop_assert_eq!(state, end);
                }
                if matches!(state, State::Gone | State::Failed | State::Lost) {
                    ended = Some(state);
                }
            }
        }
    }
}
