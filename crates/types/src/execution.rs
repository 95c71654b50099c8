//! Running something, and what came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    id::{SandboxId, SessionId},
    limits::{LimitHit, Limits},
    quantity::Span,
    session::MountRequest,
};

/// Body of `POST /api/sessions/{id}/execute`: one of `code`, `command` or `file`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExecuteRequest {
    /// Source text in `language`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The language of `code`, or of `file` where its name does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// A program and its arguments; a single text is a line for the shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// A file of the sandbox to run with its language's interpreter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What the program reads from its standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Arguments after the code or file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables on top of the session's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where to run; relative to the home directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Ends it, and all it started, after this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// Body of `POST /api/execute/sync`: a fresh sandbox for one execution.
///
/// The fields of [`ExecuteRequest`], and those that make a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OneShotRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    #[serde(default, alias = "provider", skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountRequest>,
    #[serde(default)]
    pub trusted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

impl OneShotRequest {
    /// The part that runs, without the part that makes the sandbox.
    pub fn execution(&self) -> ExecuteRequest {
        let Self { code, language, command, file, stdin, args, env, cwd, timeout, .. } =
            self.clone();
        ExecuteRequest { code, language, command, file, stdin, args, env, cwd, timeout }
    }
}

/// A command as people write it (a line for the shell) or as programs do (its words).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged, expecting = "expected a text for the shell or a list of texts")]
pub enum CommandLine {
    Shell(String),
    Words(Vec<String>),
}

/// Why an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// By itself, with an exit code.
    Exited,
    /// By a signal that was not ours.
    Signaled,
    /// We ended it: its time, or its processor time, was up.
    Timeout,
    /// The kernel ended it: the sandbox's memory was full.
    Oom,
    /// We ended it: it wrote more than it may.
    OutputLimit,
    /// It never ran: policy forbids it.
    Denied,
    /// We ended it: someone asked.
    Cancelled,
    /// Its sandbox went away beneath it, or its end was not seen.
    Lost,
    /// The sandbox could not run it. Not the program's fault.
    EngineFault,
}

/// The whole answer to "what happened".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionResult {
    pub id: String,
    pub session_id: SessionId,
    pub sandbox_id: SandboxId,
    pub status: Status,
    pub reason: Reason,
    /// The program's own, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What it wrote; bytes that are no UTF-8 are replaced, see `stdout_base64`.
    pub stdout: String,
    pub stderr: String,
    /// The exact bytes, present only when `stdout` had to be changed to be text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_base64: Option<String>,
    /// Seconds from start to end.
    pub duration: Span,
    /// Seconds of processor time, of the sandbox during this execution.
    pub cpu_time: Span,
    /// Most memory the sandbox was seen to hold during this execution, in bytes. Exact if it was
    /// more than ever before in the session; else what was held at its start or end, whichever was
    /// more, since the kernel keeps one high-water mark for the sandbox's whole life.
    pub peak_memory: Option<u64>,
    /// The output was longer than what is kept.
    pub truncated: bool,
    pub limits_hit: Vec<LimitHit>,
    /// Whether the session can go on where it was.
    pub state_survived: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// `succeeded` is exit code 0 and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Succeeded,
    Failed,
}

impl ExecutionResult {
    /// The code a shell would show: the program's own, 128 + signal, 124 for a timeout, 137 for
    /// memory, 125 where Atoll itself is to blame.
    pub fn shell_code(&self) -> u8 {
        let signal = self.signal.map_or(1, |signal| 128 + (signal & 0x7f));
        let code = match self.reason {
            Reason::Exited => self.exit_code.unwrap_or(125),
            Reason::Signaled => signal,
            Reason::Timeout => 124,
            Reason::Oom | Reason::OutputLimit => 137,
            Reason::Cancelled => 130,
            Reason::Denied => 126,
            Reason::Lost | Reason::EngineFault => 125,
        };
        u8::try_from(code).unwrap_or(125)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_an_error_that_names_it() {
        let error = serde_json::from_str::<ExecuteRequest>(r#"{"code":"1","lang":"python"}"#)
            .unwrap_err()
            .to_string();

        assert!(error.contains("lang"), "{error}");
    }

    #[test]
    fn a_command_is_a_line_or_its_words() {
        let line: ExecuteRequest = serde_json::from_str(r#"{"command":"ls | wc"}"#).unwrap();
        let words: ExecuteRequest = serde_json::from_str(r#"{"command":["ls","-l"]}"#).unwrap();

        assert_eq!(line.command, Some(CommandLine::Shell("ls | wc".into())));
        assert_eq!(words.command, Some(CommandLine::Words(vec!["ls".into(), "-l".into()])));
    }
}
