//! A request checked and turned into steps, before anything is touched.

use std::{collections::BTreeMap, time::Duration};

use atoll_engine::{Command, Isolation};
use atoll_types::{
    execution::{CommandLine, ExecuteRequest},
    limits::Limits,
    process::StartProcess,
};

use crate::{
    Error, Result,
    environments::Environment,
    languages::{Requirement, Steps},
    sessions::check_env,
};

/// The part of a request that says what to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub code: Option<&'a str>,
    pub language: Option<&'a str>,
    pub command: Option<&'a CommandLine>,
    pub file: Option<&'a str>,
    pub args: &'a [String],
    pub env: &'a BTreeMap<String, String>,
    pub cwd: Option<&'a str>,
}

/// The sandbox a plan is for, which need not be there yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub environment: &'a Environment,
    pub limits: &'a Limits,
    pub isolation: Isolation,
}

/// What to do, in this order.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub id: String,
    /// What was asked for, in a line.
    pub summary: String,
    pub write: Option<(String, String)>,
    pub requires: Option<Requirement>,
    pub compile: Option<Command>,
    pub command: Command,
    pub stdin: Option<String>,
    /// Where it keeps its own files in the sandbox, if it has any.
    pub scratch: Option<String>,
    /// Whether the program is a language's, not the caller's word.
    pub interpreted: bool,
}

impl<'a> Wanted<'a> {
    pub(crate) fn of(request: &'a ExecuteRequest) -> Self {
        Self {
            code: request.code.as_deref(),
            language: request.language.as_deref(),
            command: request.command.as_ref(),
            file: request.file.as_deref(),
            args: &request.args,
            env: &request.env,
            cwd: request.cwd.as_deref(),
        }
    }

    pub(crate) fn of_process(request: &'a StartProcess) -> Self {
        Self {
            code: request.code.as_deref(),
            language: request.language.as_deref(),
            command: request.command.as_ref(),
            file: request.file.as_deref(),
            args: &request.args,
            env: &request.env,
            cwd: request.cwd.as_deref(),
        }
    }
}

impl Place<'_> {
    /// A directory for files of one execution: in the sandbox's private temporary directory where
    /// it has one, else in its home, relative to that.
    fn scratch(self, execution: &str) -> String {
        let home = if self.isolation == Isolation::None { "" } else { "/tmp/" };
        format!("{home}.atoll-{execution}")
    }
}

impl Plan {
    pub(crate) fn new(
        id: String,
        wanted: Wanted<'_>,
        timeout: Option<Duration>,
        stdin: Option<String>,
        place: Place<'_>,
    ) -> Result<Self> {
        check(&wanted)?;
        let scratch = place.scratch(&id);
        let languages = &place.environment.languages;
        let steps = match (wanted.code, wanted.command, wanted.file) {
            (Some(code), None, None) => {
                let language = wanted.language.unwrap_or(&place.environment.language);
                languages.find(language)?.code(code, &scratch)
            }
            (None, None, Some(file)) => match wanted.language {
                Some(language) => languages.find(language)?,
                None => languages.of_file(file)?,
            }
            .file(file, &scratch),
            (None, Some(command), None) => Steps { argv: argv(command)?, ..Steps::default() },
            _ => return Err(Error::invalid("give one of `code`, `command` and `file`")),
        };
        let command = |argv: Vec<String>| Command {
            argv,
            env: wanted.env.clone(),
            cwd: wanted.cwd.map(str::to_owned),
            stdin: false,
            timeout,
            cpu_time: place.limits.cpu_time.map(|span| span.0),
            output: place.limits.output.map(|size| size.0),
            terminal: None,
        };
        let mut main = command(steps.argv);
        main.argv.extend(wanted.args.iter().cloned());
        let needs_files = steps.write.is_some() || steps.compile.is_some();
        Ok(Self {
            id,
            summary: summary(&wanted),
            write: steps.write,
            requires: steps.requires,
            compile: steps.compile.map(command),
            command: main,
            stdin,
            scratch: needs_files.then_some(scratch),
            interpreted: wanted.command.is_none(),
        })
    }

    /// The program a sandbox must have for this.
    pub(crate) fn program(&self) -> &str {
        self.command.argv.first().map_or("", String::as_str)
    }
}

fn check(wanted: &Wanted<'_>) -> Result<()> {
    check_env(wanted.env)?;
    if wanted.command.is_some() {
        if wanted.language.is_some() {
            return Err(Error::invalid("`language` goes with `code` or `file`, not `command`"));
        }
        if !wanted.args.is_empty() {
            return Err(Error::invalid("`args` go with `code` or `file`, not `command`")
                .hint("write the arguments into `command`"));
        }
    }
    let texts = [("code", wanted.code), ("file", wanted.file), ("cwd", wanted.cwd)];
    for (field, text) in texts {
        if text.is_some_and(|text| text.contains('\0')) {
            return Err(Error::invalid(format!("`{field}` holds a NUL")));
        }
    }
    if wanted.file == Some("") || wanted.cwd == Some("") {
        return Err(Error::invalid("`file` and `cwd` must not be empty"));
    }
    if wanted.args.iter().any(|arg| arg.contains('\0')) {
        return Err(Error::invalid("`args` hold a NUL"));
    }
    Ok(())
}

fn argv(command: &CommandLine) -> Result<Vec<String>> {
    let argv = match command {
        CommandLine::Shell(line) => Command::shell(line.as_str()).argv,
        CommandLine::Words(words) => words.clone(),
    };
    if argv.first().is_none_or(String::is_empty) {
        return Err(Error::invalid("`command` names no program"));
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(Error::invalid("`command` holds a NUL"));
    }
    Ok(argv)
}

/// Enough to recognise it by, for people reading the records.
fn summary(wanted: &Wanted<'_>) -> String {
    let text = match (wanted.code, wanted.command, wanted.file) {
        (Some(code), ..) => format!("{}: {code}", wanted.language.unwrap_or("code")),
        (_, Some(CommandLine::Shell(line)), _) => line.clone(),
        (_, Some(CommandLine::Words(words)), _) => words.join(" "),
        (.., Some(file)) => file.to_owned(),
        _ => String::new(),
    };
    text.chars().take(200).collect()
}
