//! Two honest ends never accuse each other, whatever happens in whatever order.

use std::collections::VecDeque;

use bytes::Bytes;
use proptest::prelude::*;

use super::super::{
    MAX_STREAMS,
    slot::Slot,
    state::{Role, State},
};
use crate::frame::Frame;

/// Longer than a window.
const LONGEST: usize = 400_000;
static ZEROS: [u8; LONGEST] = [0; LONGEST];

/// One end, what it holds and what it has sent that has not arrived.
struct End {
    state: State,
    held: Vec<u32>,
    under_way: VecDeque<(u32, Frame)>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Open,
    Accept,
    /// As much of a message of this length as may be sent; the rest never follows.
    Write(usize, usize),
    Read(usize),
    Finish(usize),
    Drop(usize),
    /// So many frames are put on the wire, then so many arrive.
    Carry(usize, usize),
}

fn any_step() -> impl Strategy<Value = (bool, Step)> {
    let which = 0..64usize;
    let step = prop_oneof![
        3 => Just(Step::Open),
        3 => Just(Step::Accept),
        4 => (which.clone(), 0..LONGEST).prop_map(|(index, length)| Step::Write(index, length)),
        4 => which.clone().prop_map(Step::Read),
        2 => which.clone().prop_map(Step::Finish),
        2 => which.prop_map(Step::Drop),
        6 => (0..20usize, 0..20usize).prop_map(|(sent, arrived)| Step::Carry(sent, arrived)),
    ];
    (any::<bool>(), step)
}

impl End {
    fn new(role: Role) -> Self {
        Self { state: State::new(role), held: Vec::new(), under_way: VecDeque::new() }
    }

    fn held(&self, index: usize) -> Option<u32> {
        let count = self.held.len();
        (count > 0).then(|| self.held[index % count])
    }

    fn put_on_the_wire(&mut self, most: usize) {
        for _ in 0..most {
            let Some(frame) = self.state.next() else { return };
            self.under_way.push_back(frame);
        }
    }

    fn drop(&mut self, index: usize) {
        if let Some(id) = self.held(index) {
            self.held.retain(|other| *other != id);
            self.state.with(id, Slot::release);
        }
    }
}

fn deliver(from: &mut End, to: &mut End, most: usize) -> Result<(), TestCaseError> {
    for _ in 0..most {
        let Some((id, frame)) = from.under_way.pop_front() else { break };
        let kind = std::mem::discriminant(&frame);
        let result = to.state.receive(id, frame);
        prop_assert!(result.is_ok(), "{result:?} for {kind:?} of {id}");
    }
    Ok(())
}

fn take(step: Step, near: &mut End, far: &mut End) -> Result<(), TestCaseError> {
    match step {
        Step::Open => {
            if let Some(Ok((id, _))) = near.state.open() {
                near.held.push(id);
            }
        }
        Step::Accept => {
            if let Some(Ok((id, _))) = near.state.accept() {
                near.held.push(id);
            }
        }
        Step::Write(index, length) => {
            if let Some(id) = near.held(index) {
                let mut message = Bytes::from_static(&ZEROS[..length]);
                near.state
                    .with(id, |slot| slot.begin().and_then(|()| slot.write(&mut message)).ok());
            }
        }
        Step::Read(index) => {
            if let Some(id) = near.held(index) {
                near.state.with(id, Slot::read);
            }
        }
        Step::Finish(index) => {
            if let Some(id) = near.held(index) {
                near.state.with(id, Slot::finish);
            }
        }
        Step::Drop(index) => near.drop(index),
        Step::Carry(sent, arrived) => {
            near.put_on_the_wire(sent);
            deliver(near, far, arrived)?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn honest_ends_agree_and_leave_nothing(steps in prop::collection::vec(any_step(), 0..300)) {
        let (mut client, mut server) = (End::new(Role::Client), End::new(Role::Server));
        for (of_client, step) in steps {
            if of_client {
                take(step, &mut client, &mut server)?;
            } else {
                take(step, &mut server, &mut client)?;
            }
        }

        // All is let go of, and what was said arrives.
        loop {
            while let Some(Ok((id, _))) = server.state.accept() {
                server.held.push(id);
            }
            let more = client.held.len() + server.held.len();
            client.drop(0);
            server.drop(0);
            client.put_on_the_wire(usize::MAX);
            server.put_on_the_wire(usize::MAX);
            let frames = client.under_way.len() + server.under_way.len();
            deliver(&mut client, &mut server, usize::MAX)?;
            deliver(&mut server, &mut client, usize::MAX)?;
            if more + frames == 0 {
                break;
            }
        }
        prop_assert_eq!(client.state.streams(), 0);
        prop_assert_eq!(server.state.streams(), 0);
    }
}

#[test]
fn the_ends_agree_on_how_many_streams_are_open() {
    let (mut client, mut server) = (End::new(Role::Client), End::new(Role::Server));
    for _ in 0..10 {
        while let Some(Ok((id, _))) = client.state.open() {
            client.held.push(id);
        }
        assert_eq!(client.held.len(), MAX_STREAMS);
        client.put_on_the_wire(usize::MAX);
        deliver(&mut client, &mut server, usize::MAX).unwrap();
        while let Some(Ok((id, _))) = server.state.accept() {
            server.held.push(id);
        }
        assert_eq!(server.held.len(), MAX_STREAMS);

        // Half of them end, one side first.
        for index in 0..MAX_STREAMS / 2 {
            client.drop(index);
        }
        for index in 0..MAX_STREAMS / 2 {
            server.drop(index);
        }
        for _ in 0..3 {
            client.put_on_the_wire(usize::MAX);
            server.put_on_the_wire(usize::MAX);
            deliver(&mut client, &mut server, usize::MAX).unwrap();
            deliver(&mut server, &mut client, usize::MAX).unwrap();
        }
        while !client.held.is_empty() || !server.held.is_empty() {
            client.drop(0);
            server.drop(0);
        }
        client.put_on_the_wire(usize::MAX);
        server.put_on_the_wire(usize::MAX);
        deliver(&mut client, &mut server, usize::MAX).unwrap();
        deliver(&mut server, &mut client, usize::MAX).unwrap();
        assert_eq!((client.state.streams(), server.state.streams()), (0, 0));
    }
}
