//! `atoll completions`: what the shell offers at a press of the tab key.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::{failure::Result, printer};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  atoll completions bash > /etc/bash_completion.d/atoll
  atoll completions zsh > ~/.zfunc/_atoll
  atoll completions fish > ~/.config/fish/completions/atoll.fish")]
pub(crate) struct Arguments {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let mut script = Vec::new();
    let mut command = crate::arguments::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "atoll", &mut script);
    printer::text(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
