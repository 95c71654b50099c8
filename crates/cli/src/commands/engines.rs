//! `atoll engines`: what the server can make sandboxes with.

use clap::Args;

use crate::{failure::Result, invocation::Invocation, report};

/// List the server's engines
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  atoll engines
  atoll engines --json | jq '.[] | select(.available) | .name'")]
pub(crate) struct Arguments {}

pub(crate) async fn run(_: Arguments, invocation: &Invocation) -> Result<u8> {
    let engines = invocation.client().await?.engines().await?;
    let printer = invocation.printer;
    printer.answer(&engines, || report::engines(printer, &engines))?;
    Ok(0)
}
