//! One call of a host: what it asks, and who answers.

use std::sync::Arc;

use atoll_agent_protocol::{
    message::{
        Cause, Disk, Done, Failure, FailureKind, Hello, OfProcess, Request, Resize, Response,
        Signal, TerminalSize, VERSION, WriteStdin, request::Call, response::Answer,
    },
    mux::Stream,
};
use tokio::sync::oneshot;

use crate::{
    agent::Agent,
    failure::{failure, internal, invalid, not_found, of_file},
    files,
    launch::{MAX_SIDE, Size},
    ports,
    process::{self, Ask, Table},
};

/// Answers one call, until the host has given it up.
pub(crate) async fn answer(agent: Arc<Agent>, stream: Stream) {
    let request = match stream.recv::<Request>().await {
        Ok(Some(Request { call: Some(call) })) => call,
        Ok(Some(Request { call: None })) => {
            let unknown = failure(FailureKind::Unsupported, "this agent does not know that call");
            say(&stream, Answer::Error(unknown)).await;
            return stream.finish();
        }
        Ok(None) | Err(_) => return,
    };
    tokio::select! {
        result = dispatch(&agent, request, &stream) => {
            if let Err(failure) = result {
                say(&stream, Answer::Error(failure)).await;
            }
            stream.finish();
        }
        () = stream.given_up() => {}
    }
}

/// Sends an answer; false if nobody hears it.
pub(crate) async fn say(stream: &Stream, answer: Answer) -> bool {
    stream.send(&Response { answer: Some(answer) }).await.is_ok()
}

async fn dispatch(agent: &Arc<Agent>, call: Call, stream: &Stream) -> Result<(), Failure> {
    let table = &agent.starter.table;
    let answer = match call {
        Call::Hello(_) => Answer::Hello(Hello { version: VERSION }),
        Call::Start(ask) => {
            let process = process::start(&agent.starter, ask, None).await?;
            Answer::Started(OfProcess { process })
        }
        Call::StartTerminal(ask) => {
            let size = size(ask.size)?;
            let start = ask.start.unwrap_or_default();
            let process = process::start(&agent.starter, start, Some(size)).await?;
            Answer::Started(OfProcess { process })
        }
        Call::Resize(ask) => done(resize(table, ask)?),
        Call::Attach(ask) => return process::attach(table, ask, stream).await,
        Call::WriteStdin(ask) => done(write_stdin(table, ask).await?),
        Call::CloseStdin(OfProcess { process }) => done(close_stdin(table, process).await?),
        Call::Signal(ask) => done(signal(table, ask).await?),
        Call::Kill(OfProcess { process }) => done(kill(table, process).await?),
        Call::Processes(_) => {
            let mut last = 0;
            while let Some(process) = table.next(last) {
                last = process.process;
                if !say(stream, Answer::Process(process)).await {
                    break;
                }
            }
            return Ok(());
        }
        Call::Disk(_) => Answer::Disk(disk(&agent.disk)?),
        Call::Connect(ask) => return ports::connect(&agent.tunnels, ask, stream).await,
        Call::Listening(_) => Answer::Ports(ports::listening(&agent.files).await?),
        call => return files::answer(&agent.files, call, stream).await,
    };
    say(stream, answer).await;
    Ok(())
}

fn done((): ()) -> Answer {
    Answer::Done(Done { truncated: false })
}

async fn write_stdin(table: &Table, ask: WriteStdin) -> Result<(), Failure> {
    let closed = || invalid("the process's standard input is closed");
    let input = table.input(ask.process)?.ok_or_else(closed)?;
    let (taken, when_taken) = oneshot::channel();
    let sent = input.send(process::Input { data: ask.data, taken }).await;
    // Whoever closes the input waits for no later writer.
    drop(input);
    sent.map_err(|_| closed())?;
    when_taken.await.map_err(|_| closed())
}

/// Closes a pipe; at a terminal, types what ends its input.
async fn close_stdin(table: &Table, process: u64) -> Result<(), Failure> {
    let Some(terminal) = table.terminal(process)? else { return table.close_input(process) };
    let Some(code) = terminal.end_of_file() else { return Ok(()) };
    drop(terminal);
    let Some(input) = table.input(process)? else { return Ok(()) };
    let (taken, _) = oneshot::channel();
    // Behind what was written before; like that, it is taken when the guest reads.
    let _ = input.send(process::Input { data: vec![code].into(), taken }).await;
    Ok(())
}

fn resize(table: &Table, ask: Resize) -> Result<(), Failure> {
    let size = size(ask.size)?;
    if table.resize(ask.process, size)? {
        return Ok(());
    }
    let process = ask.process;
    Err(if table.has_screen(process)? {
        not_found(format!("process {process} has ended"))
    } else {
        invalid(format!("process {process} has no terminal"))
    })
}

fn size(asked: Option<TerminalSize>) -> Result<Size, Failure> {
    let wrong = || invalid(format!("a terminal has 1 to {MAX_SIDE} rows, and as many columns"));
    asked.and_then(Size::new).ok_or_else(wrong)
}

async fn signal(table: &Table, ask: Signal) -> Result<(), Failure> {
    if !(1..=64).contains(&ask.signal) {
        return Err(invalid("a signal is a number from 1 to 64"));
    }
    let gone = || not_found(format!("process {} has ended", ask.process));
    let asks = table.asks(ask.process)?.ok_or_else(gone)?;
    let (done, when_done) = oneshot::channel();
    asks.send(Ask::Signal(ask.signal, done)).await.map_err(|_| gone())?;
    if when_done.await.unwrap_or(false) { Ok(()) } else { Err(gone()) }
}

async fn kill(table: &Table, process: u64) -> Result<(), Failure> {
    let Some(asks) = table.asks(process)? else { return Ok(()) };
    let (done, when_done) = oneshot::channel();
    if asks.send(Ask::Kill(Cause::Killed, done)).await.is_err() {
        return Ok(());
    }
    match when_done.await {
        Ok(true) => Ok(()),
        Ok(false) => Err(internal("not every process could be ended")),
        // Its keeper was gone before it was asked, or because it was asked.
        Err(_) if table.asks(process).is_ok_and(|asks| asks.is_none()) => Ok(()),
        Err(_) => Err(internal("the process was lost")),
    }
}

fn disk(path: &str) -> Result<Disk, Failure> {
    let space = rustix::fs::statvfs(path).map_err(|cause| of_file("disk", &cause.into()))?;
    let total = space.f_blocks.saturating_mul(space.f_frsize);
    let free = space.f_bfree.saturating_mul(space.f_frsize);
    Ok(Disk { used: total.saturating_sub(free), total })
}
