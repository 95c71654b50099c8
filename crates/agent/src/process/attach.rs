//! Following a process's output.

use atoll_agent_protocol::{
    message::{Attach, Failure, response::Answer},
    mux::Stream,
};

use super::table::{Read, Table};
use crate::calls::say;

/// Sends all output from the given offsets on, then the end.
pub(crate) async fn attach(table: &Table, ask: Attach, stream: &Stream) -> Result<(), Failure> {
    let mut changed = table.watch(ask.process)?;
    let mut offsets = [ask.stdout, ask.stderr];
    let follower = table.follow(ask.process, ask.stdout)?;
    let mut first = 0;
    loop {
        changed.borrow_and_update();
        match table.read(ask.process, offsets, first)? {
            Read::Output(output) => {
                let index = usize::from(output.stream != 1);
                offsets[index] = output.offset + output.data.len() as u64;
                // Neither stream waits for the end of the other.
                first = 1 - index;
                if !say(stream, Answer::Output(output)).await {
                    return Ok(());
                }
                follower.advance(offsets[0]);
            }
            Read::Ended(ended) => {
                say(stream, Answer::Ended(ended)).await;
                return Ok(());
            }
            // An error means that the process was forgotten, which reading again will tell.
            Read::Wait => drop(changed.changed().await),
        }
    }
}
