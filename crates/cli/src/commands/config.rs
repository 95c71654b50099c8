//! `atoll config`: the settings, and where each came from.

use std::{collections::BTreeMap, fmt::Display};

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    failure::Result,
    invocation::Invocation,
    printer::{self, Printer},
};

/// Show the settings
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  atoll config default > ~/.config/atoll/config.toml
  atoll config show")]
pub(crate) enum Command {
    Default(Default),
    Show(Show),
}

/// Print every setting with its description and default, as a file to begin with
#[derive(Debug, Args)]
#[command(after_help = "Example:
  atoll config default > ~/.config/atoll/config.toml")]
pub(crate) struct Default {}

/// Print every setting as it is now, and what said so
#[derive(Debug, Args)]
#[command(after_help = "Example:
  ATOLL_LOG=debug atoll config show")]
pub(crate) struct Show {}

#[derive(Serialize)]
struct Setting<V> {
    value: V,
    from: String,
}

pub(crate) fn run(command: &Command, invocation: &Invocation) -> Result<u8> {
    match command {
        Command::Default(Default {}) => printer::text(atoll_config::DEFAULTS)?,
        Command::Show(Show {}) => show(invocation)?,
    }
    Ok(0)
}

fn show(invocation: &Invocation) -> Result {
    let settings: BTreeMap<_, _> = invocation
        .loaded
        .origins
        .iter()
        .map(|(key, (value, origin))| (key, Setting { value, from: origin.to_string() }))
        .collect();
    invocation.printer.answer(&settings, || {
        let file = match &invocation.loaded.file {
            Some(path) => format!("settings file: {}", path.display()),
            None => "settings file: none".to_owned(),
        };
        let data = invocation.settings().data_dir.display();
        format!("{}\n\n{file}\ndata directory: {data}", table(invocation.printer, &settings))
    })
}

fn table(printer: Printer, settings: &BTreeMap<&String, Setting<impl Display>>) -> String {
    let rows = settings
        .iter()
        .map(|(key, setting)| [(*key).clone(), setting.value.to_string(), setting.from.clone()]);
    printer.table(&["SETTING", "VALUE", "FROM"], rows)
}
