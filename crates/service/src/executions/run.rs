//! Doing what a plan says, and watching until it is over.

use std::sync::Arc;

use atoll_engine::{Command, ErrorKind, Event, Events, MAX_OUTPUT, Offsets, Sandbox, exec};
use atoll_types::{execution::ExecutionResult, id::ProcessId, process::Stream};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::{Facts, Plan};
use crate::{Code, Error, Result, Service, live::Live};

/// What kept the main command from running.
enum Before {
    /// It may run.
    Nothing,
    /// It did not compile: that is the result.
    Ended(Facts),
}

impl Service {
    /// Runs a plan to its recorded result. `cancelled` ends the program, not the run.
    pub(super) async fn run(
        &self,
        live: &Arc<Live>,
        plan: Plan,
        cancelled: &CancellationToken,
    ) -> Result<ExecutionResult> {
        self.begin(live, &plan).await?;
        let facts = match self.facts(live, &plan, cancelled).await {
            Ok(facts) => facts,
            Err(error) => {
                self.refuse(&plan.id, &error).await;
                return Err(error);
            }
        };
        let result = facts.result(&plan.id, live);
        let result = self.explain(live, result).await;
        self.record(&result).await?;
        Ok(result)
    }

    async fn facts(
        &self,
        live: &Arc<Live>,
        plan: &Plan,
        cancelled: &CancellationToken,
    ) -> Result<Facts> {
        let plan = &self.placed(live, plan).await?;
        let before = tokio::select! {
            before = prepare(&live.sandbox, plan) => before?,
            () = cancelled.cancelled() => Before::Ended(Facts::cancelled()),
        };
        if let Before::Ended(facts) = before {
            return Ok(facts);
        }
        let mut command = plan.command.clone();
        command.stdin = plan.stdin.is_some();
        let output = command.output;
        let process = live.sandbox.start(command).await.map_err(|error| missing(plan, error))?;
        if let Err(error) = self.inner.store.execution_started(&plan.id, process).await {
            // It runs, and its result will be recorded; only a crash now would lose it.
            tracing::warn!(execution = plan.id, %error, "start not written down");
        }
        let stdin = plan.stdin.clone().map(Bytes::from);
        Ok(follow(&live.sandbox, process, stdin, output, cancelled).await)
    }

    /// The plan with its own directory made absolute, if it runs somewhere else than at home.
    async fn placed(&self, live: &Live, plan: &Plan) -> Result<Plan> {
        let mut plan = plan.clone();
        let Some(scratch) = plan.scratch.clone().filter(|scratch| !scratch.starts_with('/')) else {
            return Ok(plan);
        };
        if plan.command.cwd.is_none() {
            return Ok(plan);
        }
        let home = live.sandbox.files().stat(".").await?.path;
        let absolute = format!("{}/{scratch}", home.trim_end_matches("/.").trim_end_matches('/'));
        let fix = |word: &mut String| *word = word.replace(&scratch, &absolute);
        plan.command.argv.iter_mut().for_each(fix);
        plan.compile.iter_mut().flat_map(|command| &mut command.argv).for_each(fix);
        Ok(plan)
    }

    /// Removes the execution's own files, apart from the answer.
    pub(super) fn tidy(&self, live: &Arc<Live>, scratch: Option<String>) {
        let Some(scratch) = scratch else { return };
        let live = Arc::clone(live);
        self.inner.tasks.spawn(async move {
            let removed = live.sandbox.files().remove(&scratch).await;
            tracing::trace!(?removed, "files of an execution");
        });
    }
}

/// Everything before the main command.
async fn prepare(sandbox: &Arc<dyn Sandbox>, plan: &Plan) -> Result<Before> {
    if let Some(requirement) = &plan.requires {
        let command = Command::new(requirement.command.iter());
        let printed = exec(sandbox, command, None).await.map_err(|error| missing(plan, error))?;
        if !requirement.is_met_by(&String::from_utf8_lossy(&printed.stdout)) {
            let needed = format!("{} {}", plan.program(), requirement.version);
            return Err(Error::new(
                Code::InterpreterMissing,
                format!("the sandbox has no `{needed}` or newer"),
            )
            .hint("use an environment that has it, or another language"));
        }
    }
    write_source(sandbox, plan).await?;
    let Some(compile) = &plan.compile else { return Ok(Before::Nothing) };
    if plan.write.is_none() {
        // A file of the sandbox is compiled into a directory that nothing has made yet.
        sandbox.files().make_directory(plan.scratch.as_deref().unwrap_or(".")).await?;
    }
    let program = compile.argv.first().cloned().unwrap_or_default();
    let output = exec(sandbox, compile.clone(), None)
        .await
        .map_err(|error| no_interpreter(&program, error))?;
    if output.outcome.succeeded() {
        return Ok(Before::Nothing);
    }
    Ok(Before::Ended(Facts {
        stdout: output.stdout,
        stderr: output.stderr,
        outcome: output.outcome,
        hint: Some("it did not compile".to_owned()),
    }))
}

/// Puts the code where the command will look for it.
async fn write_source(sandbox: &Arc<dyn Sandbox>, plan: &Plan) -> Result<()> {
    let Some((path, code)) = plan.write.clone() else { return Ok(()) };
    let content = stream::once(async move { Ok(Bytes::from(code)) }).boxed();
    Ok(sandbox.files().write(&path, content).await?)
}

impl Service {
    /// Makes ready to start a plan as a process: its files are there, it is compiled.
    pub(crate) async fn ready(&self, live: &Arc<Live>, plan: &Plan) -> Result<Command> {
        let plan = self.placed(live, plan).await?;
        match prepare(&live.sandbox, &plan).await? {
            Before::Nothing => Ok(plan.command),
            Before::Ended(facts) => {
                let said =
                    String::from_utf8_lossy(&facts.stderr).chars().take(2000).collect::<String>();
                Err(Error::invalid(format!("`code` did not compile: {said}")))
            }
        }
    }

    /// Follows an execution whose process was found again, to its recorded result.
    pub(crate) async fn resume(&self, live: &Arc<Live>, id: &str, process: ProcessId) {
        let never = CancellationToken::new();
        let output = live.limits.output.map(|size| size.0);
        let facts = follow(&live.sandbox, process, None, output, &never).await;
        let result = self.explain(live, facts.result(id, live)).await;
        if let Err(error) = self.record(&result).await {
            tracing::error!(execution = id, %error, "result not written down");
        }
    }

    /// Says why a sandbox went away, where the service knows.
    async fn explain(&self, live: &Live, mut result: ExecutionResult) -> ExecutionResult {
        if result.reason == atoll_types::execution::Reason::Lost
            && let Ok(Some(record)) = self.inner.store.session(&live.id).await
            && let Some(end) = record.end
        {
            let why = crate::sessions::reason(end);
            result.hint = Some(format!("the session ended while this ran: {why}"));
        }
        result
    }
}

/// Feeds and reads a process until its end. `cancelled` kills it.
async fn follow(
    sandbox: &Arc<dyn Sandbox>,
    process: ProcessId,
    stdin: Option<Bytes>,
    output: Option<u64>,
    cancelled: &CancellationToken,
) -> Facts {
    let feed = async {
        if let Some(data) = stdin {
            // A program need not read what it is given: only its end counts.
            let _ = sandbox.write_stdin(process, data).await;
            let _ = sandbox.close_stdin(process).await;
        }
        std::future::pending::<()>().await;
    };
    let kill = async {
        cancelled.cancelled().await;
        if let Err(error) = sandbox.kill(process).await {
            tracing::warn!(%process, %error, "a cancelled program was not killed");
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        facts = read(sandbox, process, output) => facts,
        () = feed => Facts::lost(),
        () = kill => Facts::lost(),
    }
}

async fn read(sandbox: &Arc<dyn Sandbox>, process: ProcessId, output: Option<u64>) -> Facts {
    let most = usize::try_from(output.unwrap_or(MAX_OUTPUT)).unwrap_or(usize::MAX);
    let mut events: Events = match sandbox.attach(process, Offsets::default()).await {
        Ok(events) => events,
        Err(error) => return Facts::broken(Vec::new(), Vec::new(), &error),
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Output { stream: Stream::Stdout, data, .. }) => add(&mut stdout, &data, most),
            Ok(Event::Output { stream: Stream::Stderr, data, .. }) => add(&mut stderr, &data, most),
            Ok(Event::Ended(outcome)) => return Facts { stdout, stderr, outcome, hint: None },
            Err(error) => return Facts::broken(stdout, stderr, &error),
        }
    }
    Facts::broken(stdout, stderr, &atoll_engine::Error::lost("the output ended too soon"))
}

/// Takes no more than allowed, whatever a sandbox sends.
fn add(kept: &mut Vec<u8>, data: &[u8], most: usize) {
    let room = most.saturating_sub(kept.len());
    kept.extend_from_slice(&data[..data.len().min(room)]);
}

/// An error of starting the main command, in the words of the request.
pub(crate) fn missing(plan: &Plan, error: atoll_engine::Error) -> Error {
    if plan.interpreted {
        return no_interpreter(plan.program(), error);
    }
    if error.kind() == ErrorKind::NotFound {
        let message = format!("the sandbox has no program `{}`", plan.program());
        return Error::new(Code::ProgramMissing, message).because(error);
    }
    error.into()
}

fn no_interpreter(program: &str, error: atoll_engine::Error) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error.into();
    }
    Error::new(Code::InterpreterMissing, format!("the sandbox has no `{program}`"))
        .hint(format!(
            "use an environment that has `{program}`, or install it beneath the host's /usr: of the \
             host's programs an isolated sandbox sees only those, and what `also` of its \
             environment names (so name there a toolchain of pyenv, or ~/.cargo)"
        ))
        .because(error)
}
