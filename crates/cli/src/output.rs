//! Where the output of a process goes.

use std::io::{self, IsTerminal as _};

use atoll_types::process::{ProcessEnd, Stream};
use serde::Serialize;
use tokio::io::{AsyncWriteExt as _, Stderr, Stdout};

use crate::printer::Printer;

/// On as it comes, or into one answer at the end.
#[derive(Debug)]
pub(crate) enum Output {
    Passed(Passed),
    /// For JSON, which has to be whole. The limit on output is the limit on this.
    Kept {
        stdout: Vec<u8>,
        stderr: Vec<u8>,
    },
}

/// Our own streams.
#[derive(Debug)]
pub(crate) struct Passed {
    stdout: Stdout,
    stderr: Stderr,
    /// Whether what was last written to a terminal has not ended its line.
    within_line: bool,
}

/// A process that has ended and all it wrote.
#[derive(Debug, Serialize)]
struct Whole<'a> {
    /// Bytes that are no UTF-8 are replaced.
    stdout: &'a str,
    stderr: &'a str,
    #[serde(flatten)]
    end: &'a ProcessEnd,
}

impl Output {
    pub(crate) fn new(printer: Printer) -> Self {
        if printer.json_asked_for() {
            return Self::Kept { stdout: Vec::new(), stderr: Vec::new() };
        }
        Self::passed()
    }

    /// On as it comes, whatever was asked for.
    pub(crate) fn passed() -> Self {
        Self::Passed(Passed {
            stdout: tokio::io::stdout(),
            stderr: tokio::io::stderr(),
            within_line: false,
        })
    }

    pub(crate) async fn write(&mut self, stream: Stream, data: &[u8]) -> io::Result<()> {
        match (self, stream) {
            (Self::Kept { stdout, .. }, Stream::Stdout) => stdout.extend_from_slice(data),
            (Self::Kept { stderr, .. }, Stream::Stderr) => stderr.extend_from_slice(data),
            (Self::Passed(passed), Stream::Stdout) => {
                passed.stdout.write_all(data).await?;
                passed.stdout.flush().await?;
                passed.note(io::stdout().is_terminal(), data);
            }
            (Self::Passed(passed), Stream::Stderr) => {
                passed.stderr.write_all(data).await?;
                passed.stderr.flush().await?;
                passed.note(io::stderr().is_terminal(), data);
            }
        }
        Ok(())
    }

    /// Says how the process ended: all of it in JSON, or only what its exit code does not tell.
    pub(crate) fn finish(&self, printer: Printer, end: &ProcessEnd) -> crate::failure::Result {
        match self {
            Self::Kept { stdout, stderr } => {
                let (stdout, stderr) =
                    (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
                let whole = Whole { stdout: &stdout, stderr: &stderr, end };
                printer.answer(&whole, String::new)
            }
            Self::Passed(passed) => {
                crate::follow::explain(printer, end, passed.within_line);
                Ok(())
            }
        }
    }
}

impl Passed {
    fn note(&mut self, terminal: bool, data: &[u8]) {
        if let (true, Some(last)) = (terminal, data.last()) {
            self.within_line = *last != b'\n';
        }
    }
}
