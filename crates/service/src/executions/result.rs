//! From what was seen to what is told.

use std::time::Duration;

use atoll_engine::{ErrorKind, Outcome};
use atoll_store::Execution;
use atoll_types::{
    execution::{ExecutionResult, Reason, Status},
    id::{SandboxId, SessionId},
    limits::LimitHit,
    quantity::Span,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::{Error, Result, live::Live};

/// How much of each stream is kept in the records; the caller gets all of it.
const KEPT: usize = 64 << 10;

/// What was seen of a process.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub outcome: Outcome,
    pub hint: Option<String>,
}

impl Facts {
    /// Cancelled before it ran.
    pub(super) fn cancelled() -> Self {
        Self::without_process(Reason::Cancelled, true)
    }

    /// Its end was not seen.
    pub(crate) fn lost() -> Self {
        Self::without_process(Reason::Lost, false)
    }

    /// The sandbox failed while it ran. That is not the program's doing.
    pub(super) fn broken(stdout: Vec<u8>, stderr: Vec<u8>, error: &atoll_engine::Error) -> Self {
        let facts = match error.kind() {
            ErrorKind::Lost | ErrorKind::NotFound => Self::lost(),
            _ => Self::without_process(Reason::EngineFault, true),
        };
        tracing::warn!(%error, "an execution's end was not seen");
        Self { stdout, stderr, ..facts }
    }

    fn without_process(reason: Reason, sandbox_survived: bool) -> Self {
        let outcome = Outcome {
            reason,
            exit_code: None,
            signal: None,
            duration: Duration::ZERO,
            cpu_time: Duration::ZERO,
            peak_memory: None,
            truncated: false,
            limits_hit: Vec::new(),
            sandbox_survived,
        };
        Self { stdout: Vec::new(), stderr: Vec::new(), outcome, hint: None }
    }

    pub(crate) fn result(self, id: &str, live: &Live) -> ExecutionResult {
        self.told(id.to_owned(), live.id.clone(), live.sandbox_id.clone())
    }

    /// The result of an execution whose end nobody saw.
    pub(crate) fn untold(mut self, execution: &Execution, survived: bool) -> ExecutionResult {
        self.outcome.sandbox_survived = survived;
        self.hint = Some("the server stopped while this ran, and it was not found again".into());
        self.told(execution.id.clone(), execution.session.clone(), execution.sandbox.clone())
    }

    fn told(self, id: String, session_id: SessionId, sandbox_id: SandboxId) -> ExecutionResult {
        let succeeded = self.outcome.succeeded() && self.hint.is_none();
        let hint = self.hint.or_else(|| hint(&self.outcome).map(str::to_owned));
        let (stdout, stdout_base64) = text(self.stdout);
        let (stderr, stderr_base64) = text(self.stderr);
        ExecutionResult {
            id,
            session_id,
            sandbox_id,
            status: if succeeded { Status::Succeeded } else { Status::Failed },
            reason: self.outcome.reason,
            exit_code: self.outcome.exit_code,
            signal: self.outcome.signal,
            stdout,
            stderr,
            stdout_base64,
            stderr_base64,
            duration: Span(self.outcome.duration),
            cpu_time: Span(self.outcome.cpu_time),
            peak_memory: self.outcome.peak_memory,
            truncated: self.outcome.truncated,
            limits_hit: self.outcome.limits_hit,
            state_survived: self.outcome.sandbox_survived,
            hint,
        }
    }
}

/// What to do next, where that is known.
fn hint(outcome: &Outcome) -> Option<&'static str> {
    let hit = |limit| outcome.limits_hit.contains(&limit);
    match outcome.reason {
        Reason::Timeout if hit(LimitHit::Cpu) => {
            Some("it used up its processor time: raise `limits.cpu_time`, or do less")
        }
        Reason::Timeout => Some("it took too long and was ended: raise `timeout`, or do less"),
        Reason::Oom => Some("the sandbox ran out of memory: raise `limits.memory`, or use less"),
        Reason::OutputLimit => {
            Some("it wrote more than it may: raise `limits.output`, or write to a file")
        }
        Reason::Denied => Some("policy forbids it: it never ran"),
        Reason::Lost => Some("the sandbox went away beneath it: create a new session"),
        Reason::EngineFault => Some("the sandbox failed, not the program: try again"),
        Reason::Exited | Reason::Signaled if hit(LimitHit::Pids) => {
            Some("it could not start more processes: raise `limits.pids`")
        }
        Reason::Exited | Reason::Signaled if hit(LimitHit::Disk) => {
            Some("its disk is full: raise `limits.disk`, or remove files")
        }
        Reason::Exited | Reason::Signaled if hit(LimitHit::Memory) => {
            Some("a process of it was ended for want of memory: raise `limits.memory`")
        }
        Reason::Cancelled | Reason::Exited | Reason::Signaled => None,
    }
}

/// Bytes as text, and exactly, if the text is not the same.
fn text(bytes: Vec<u8>) -> (String, Option<String>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let bytes = error.into_bytes();
            let exact = BASE64_STANDARD.encode(&bytes);
            (String::from_utf8_lossy(&bytes).into_owned(), Some(exact))
        }
    }
}

/// A result as the records keep it: long output is cut, and marked as cut.
pub(super) fn shortened(result: &ExecutionResult) -> Result<serde_json::Value> {
    let mut result = result.clone();
    for stream in [&mut result.stdout, &mut result.stderr] {
        if stream.len() > KEPT {
            stream.truncate(stream.floor_char_boundary(KEPT));
            result.truncated = true;
        }
    }
    for exact in [&mut result.stdout_base64, &mut result.stderr_base64] {
        if exact.as_ref().is_some_and(|exact| exact.len() > KEPT) {
            *exact = None;
            result.truncated = true;
        }
    }
    serde_json::to_value(result)
        .map_err(|error| Error::internal("the result cannot be written down").because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(reason: Reason, limits_hit: Vec<LimitHit>) -> Outcome {
        Outcome { limits_hit, ..Facts { outcome: Facts::lost().outcome, ..Facts::lost() }.outcome }
            .with(reason)
    }

    trait With {
        fn with(self, reason: Reason) -> Self;
    }

    impl With for Outcome {
        fn with(self, reason: Reason) -> Self {
            Self { reason, ..self }
        }
    }

    #[test]
    fn text_stays_and_bytes_are_told_exactly() {
        assert_eq!(text(b"plain \xc3\xa4".to_vec()), ("plain ä".to_owned(), None));
        assert_eq!(
            text(vec![0xff, b'a']),
            ("\u{fffd}a".to_owned(), Some(BASE64_STANDARD.encode([0xff, b'a'])))
        );
    }

    #[test]
    fn a_limit_says_which_one_to_raise() {
        for (reason, hit, word) in [
            (Reason::Timeout, vec![], "`timeout`"),
            (Reason::Timeout, vec![LimitHit::Cpu], "`limits.cpu_time`"),
            (Reason::Oom, vec![], "`limits.memory`"),
            (Reason::OutputLimit, vec![], "`limits.output`"),
            (Reason::Exited, vec![LimitHit::Pids], "`limits.pids`"),
            (Reason::Exited, vec![LimitHit::Disk], "`limits.disk`"),
        ] {
            let hint = hint(&outcome(reason, hit)).unwrap();
            assert!(hint.contains(word), "{hint}");
        }
        assert_eq!(hint(&outcome(Reason::Exited, vec![])), None);
    }
}
