//! A process of a session as if it ran here: its output, its input, its end.

use std::io;

use atoll_client::{Client, Event, Events};
use atoll_types::{
    execution::Reason,
    id::{ProcessId, SessionId},
    limits::LimitHit,
    process::ProcessEnd,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::io::AsyncReadExt as _;

use crate::{
    failure::{Failure, OURS, Result},
    output::Output,
    printer::Printer,
    words,
};

/// How much of standard input goes into one request.
const PIECE: usize = 64 << 10;

/// Exit code of a program whose output nobody reads any more, as shells have it for SIGPIPE.
pub(crate) const UNREAD: u8 = 141;

/// How following a process ended.
#[derive(Debug)]
pub(crate) enum Followed {
    Ended(ProcessEnd),
    /// Whoever read our standard output has gone.
    Unread,
}

/// Passes on what the process writes, as it is, and, if asked to, what this program reads.
///
/// Dropping the future leaves the process running.
pub(crate) async fn follow(
    client: &Client,
    session: &SessionId,
    process: ProcessId,
    stdin: bool,
    output: &mut Output,
) -> Result<Followed> {
    let events = client.attach_process(session, process, 0, 0).await?;
    let feeding = async {
        if stdin {
            feed(client, session, process).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        followed = pass_on(events, output) => followed,
        () = feeding => unreachable!("feeding never returns"),
    }
}

async fn pass_on(mut events: Events, output: &mut Output) -> Result<Followed> {
    while let Some(event) = events.next().await {
        match event? {
            Event::Output { stream, data, .. } => match output.write(stream, &data).await {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(Followed::Unread);
                }
                Err(error) => return Err(Failure::new(format!("cannot write: {error}"))),
                Ok(()) => {}
            },
            Event::End(end) => return Ok(Followed::Ended(end)),
        }
    }
    Err(Failure::new("the output ended before the process did"))
}

/// Passes standard input on until it, or the process's interest in it, ends.
async fn feed(client: &Client, session: &SessionId, process: ProcessId) {
    let mut stdin = tokio::io::stdin();
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = stdin.read(&mut piece).await {
        let data = Bytes::copy_from_slice(&piece[..length]);
        if client.write_stdin(session, process, data).await.is_err() {
            return;
        }
    }
    // One that has ended meanwhile has no input to close.
    let _ = client.close_stdin(session, process).await;
}

/// The exit code a shell would show for this end: the program's own, 128 + signal, 124 for a
/// timeout, 137 for memory or output, 125 where the program is not to blame.
pub(crate) fn exit_code(end: &ProcessEnd) -> u8 {
    let code = match end.reason {
        Reason::Exited => end.exit_code.unwrap_or(OURS.into()),
        Reason::Signaled => end.signal.map_or(1, |signal| 128 + (signal & 0x7f)),
        Reason::Timeout => 124,
        Reason::Oom | Reason::OutputLimit => 137,
        Reason::Cancelled => 130,
        Reason::Denied => 126,
        Reason::Lost | Reason::EngineFault => OURS.into(),
    };
    u8::try_from(code).unwrap_or(OURS)
}

/// Says why the process ended, where its exit code alone does not; on a line of its own, if what
/// the process wrote has not ended its last.
pub(crate) fn explain(printer: Printer, end: &ProcessEnd, within_line: bool) {
    if matches!(end.reason, Reason::Exited) && end.limits_hit.is_empty() {
        return;
    }
    if within_line {
        printer.new_line();
    }
    let after = format!("after {:.1}s", end.duration.0.as_secs_f64());
    let (said, hint) = match end.reason {
        Reason::Exited | Reason::Signaled => {
            if let Some(signal) = end.signal {
                printer.note(format_args!("ended by signal {}", words::signal(signal)));
            }
            return end.limits_hit.iter().for_each(|hit| ran_into(printer, *hit));
        }
        Reason::Timeout if end.limits_hit.contains(&LimitHit::Cpu) => (
            format!("timeout: the processor time was used up {after}"),
            Some("give it more with --cpu-time"),
        ),
        Reason::Timeout => {
            (format!("timeout: ended {after}"), Some("give it more time with --timeout"))
        }
        Reason::Oom => (
            format!("out of memory: ended {after}"),
            Some("give it more with --memory, for example --memory 1g"),
        ),
        Reason::OutputLimit => {
            (format!("too much output: ended {after}"), Some("allow more with --output"))
        }
        Reason::Denied => ("denied: policy forbids it".to_owned(), None),
        Reason::Cancelled => (format!("cancelled {after}"), None),
        Reason::Lost => (
            format!("lost: the sandbox ended beneath the program {after}"),
            Some("`atoll session show SESSION` says why the session ended"),
        ),
        Reason::EngineFault => (
            "the sandbox could not run it; the program is not to blame".to_owned(),
            Some("`atoll doctor` shows what this machine lacks"),
        ),
    };
    printer.note(said);
    if let Some(hint) = hint {
        printer.hint(hint);
    }
}

/// A program may have ended by itself because of a limit it ran into.
fn ran_into(printer: Printer, hit: LimitHit) {
    let (what, flag) = match hit {
        LimitHit::Memory => ("memory", "--memory"),
        LimitHit::Pids => ("number of processes", "--pids"),
        LimitHit::Disk => ("disk space", "--disk"),
        LimitHit::OpenFiles => ("number of open files", "`open_files` in the settings' limits"),
        LimitHit::Cpu => ("processor time", "--cpu-time"),
        LimitHit::Output => ("output", "--output"),
    };
    printer.note(format_args!("the program ran into its limit on {what}"));
    printer.hint(format_args!("raise it with {flag}"));
}

#[cfg(test)]
mod tests {
    use atoll_types::quantity::Span;

    use super::*;

    fn end(reason: Reason, exit_code: Option<i32>, signal: Option<i32>) -> ProcessEnd {
        let duration = Span::seconds(1.0).unwrap();
        ProcessEnd { reason, exit_code, signal, duration, truncated: false, limits_hit: Vec::new() }
    }

    #[test]
    fn a_programs_own_code_is_passed_on() {
        for code in [0, 1, 124, 255] {
            assert_eq!(i32::from(exit_code(&end(Reason::Exited, Some(code), None))), code);
        }
    }

    #[test]
    fn every_other_end_has_the_code_shells_give_it() {
        let table = [
            (Reason::Signaled, Some(11), 139),
            (Reason::Timeout, Some(9), 124),
            (Reason::Oom, Some(9), 137),
            (Reason::Lost, None, 125),
            (Reason::EngineFault, None, 125),
        ];
        for (reason, signal, code) in table {
            assert_eq!(exit_code(&end(reason, None, signal)), code, "{reason:?}");
        }
    }
}
