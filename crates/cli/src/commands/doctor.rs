//! `atoll doctor`: what this machine gives, asked directly, with no server needed.

use std::path::Path;

use atoll_types::engine::EngineInfo;
use clap::Args;
use serde::Serialize;

use crate::{
    doctor::{
        host::{self, Finding},
        known_bad::Verdict,
        programs::{self, Found},
    },
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
Versions are compared with a table of known holes. Distributions fix holes without changing a
version's first numbers, so theirs are never called bad, only worth looking up.

Examples:
  atoll doctor
  atoll doctor --json | jq '.engines[] | {name, available, hint}'
  atoll doctor --json | jq '.versions[] | select(.verdict == \"bad\")'"
)]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    default_engine: String,
    healthy: bool,
    server: Option<server::Record>,
    engines: Vec<EngineInfo>,
    host: Vec<Finding>,
    versions: Vec<Found>,
}

pub(crate) async fn run(_: Arguments, invocation: &Invocation) -> Result<u8> {
    let settings = invocation.settings();
    let engines = registry::describe(settings).await;
    let docker = engines.iter().find(|engine| engine.name == "docker");
    let daemon = docker.and_then(|docker| docker.facts.iter().find(|fact| fact.name == "daemon"));
    let versions = programs::find(daemon.map(|fact| fact.value.as_str())).await;
    let default = settings.sessions.engine.clone();
    let healthy = engines.iter().any(|engine| engine.name == default && engine.available);
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        default_engine: default,
        healthy,
        server: server::find(&invocation.place()).await.map(|found| found.record),
        engines,
        host: host::look(Path::new("/")),
        versions,
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
    parts.push(report::host(printer, &report.host));
    parts.push(report::versions(printer, &report.versions));
    let hints = report
        .engines
        .iter()
        .filter_map(|engine| Some(format!("hint: {}: {}", engine.name, engine.hint.as_ref()?)));
    let mut hints: Vec<_> = hints.collect();
    let doubted = report.versions.iter().find(|found| found.verdict == Verdict::LookUp);
    if let Some(found) = doubted {
        let name = &found.name;
        hints.push(format!(
            "hint: look up: a package's changelog names the holes it fixes (apt changelog {name}, \
             rpm -q --changelog {name})"
        ));
    }
    if !hints.is_empty() {
        parts.push(hints.join("\n"));
    }
    let server = match &report.server {
        Some(record) => format!("server: {record}"),
        None => "server: none; commands start a private one".to_owned(),
    };
    let worst = report.versions.iter().map(|found| found.verdict).max();
    let verdict = if report.healthy {
        let ready = printer.word(Tone::Good, "this machine is ready");
        match worst {
            Some(Verdict::Bad) => {
                let bad = printer.word(Tone::Bad, "what it runs on has known holes: update it");
                format!("{ready}, but {bad}")
            }
            Some(Verdict::LookUp) => {
                format!("{ready}; look up whether your distribution has fixed the versions above")
            }
            _ => ready,
        }
    } else {
        printer.word(
            Tone::Bad,
            &format!("the default engine `{}` cannot run here", report.default_engine),
        )
    };
    parts.push(format!("{server}\n{verdict}"));
    parts.join("\n\n")
}
