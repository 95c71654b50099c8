//! `atoll doctor`: what this machine gives, asked directly, with no server needed.

use atoll_types::engine::EngineInfo;
use clap::Args;
use serde::Serialize;

use crate::{
    failure::Result,
    invocation::Invocation,
    printer::{Printer, Tone},
    report,
    server::{self, registry},
};

/// Show what this machine can isolate, how well each limit holds, and what is missing
#[derive(Debug, Args)]
#[command(
    after_help = "It changes nothing and needs no server. The exit code is 1 if the default engine cannot run.

Examples:
  atoll doctor
  atoll doctor --json | jq '.engines[] | {name, available, hint}'"
)]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    default_engine: String,
    healthy: bool,
    server: Option<server::Record>,
    engines: Vec<EngineInfo>,
}

pub(crate) async fn run(_: Arguments, invocation: &Invocation) -> Result<u8> {
    let settings = invocation.settings();
    let engines = registry::describe(settings).await;
    let default = settings.sessions.engine.clone();
    let healthy = engines.iter().any(|engine| engine.name == default && engine.available);
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        default_engine: default,
        healthy,
        server: server::find(&invocation.place()).await.map(|found| found.record),
        engines,
    };
    invocation.printer.answer(&report, || text(invocation.printer, &report))?;
    Ok(u8::from(!healthy))
}

fn text(printer: Printer, report: &Report) -> String {
    let mut parts = vec![report::engines(printer, &report.engines)];
    if report.engines.iter().any(|engine| !engine.grades.is_empty()) {
        parts.push(report::grades(printer, &report.engines));
    }
    if report.engines.iter().any(|engine| !engine.facts.is_empty()) {
        parts.push(report::facts(printer, &report.engines));
    }
    let hints = report
        .engines
        .iter()
        .filter_map(|engine| Some(format!("hint: {}: {}", engine.name, engine.hint.as_ref()?)));
    let hints: Vec<_> = hints.collect();
    if !hints.is_empty() {
        parts.push(hints.join("\n"));
    }
    let server = match &report.server {
        Some(record) => format!("server: {record}"),
        None => "server: none; commands start a private one".to_owned(),
    };
    let verdict = if report.healthy {
        printer.word(Tone::Good, "this machine is ready")
    } else {
        printer.word(
            Tone::Bad,
            &format!("the default engine `{}` cannot run here", report.default_engine),
        )
    };
    parts.push(format!("{server}\n{verdict}"));
    parts.join("\n\n")
}
