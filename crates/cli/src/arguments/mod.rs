//! What may be typed. What it means is decided in `commands`.

mod bind;
mod bytes;
mod copy;
mod pair;
mod sandbox;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use bind::{Bind, HERE};
pub(crate) use bytes::Bytes;
pub(crate) use copy::Place;
pub(crate) use pair::Pair;
pub(crate) use sandbox::SandboxArguments;

use crate::commands;

/// Runs code that nobody has read yet, in a sandbox.
#[derive(Debug, Parser)]
#[command(
    name = "atoll",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Examples:
  atoll run -c 'print(6 * 7)'              one line of Python, in a sandbox of its own
  atoll run --here script.py -- --fast     a file, with this directory to read
  atoll session create                     a sandbox that stays
  atoll exec SESSION -- sh -c 'ls -la'     something in it
  atoll sh SESSION                         a terminal in it
  atoll doctor                             what this machine gives

With no server running, commands start a private one that ends by itself when idle."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Globals {
    /// Answer in JSON; so it is by itself when the output is not a terminal
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Answer in tables, also where the output is not a terminal
    #[arg(long, global = true, conflicts_with = "json", help_heading = "Global options")]
    pub(crate) table: bool,
    /// Say only what was asked for, and what went wrong
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Read settings from this file
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// Keep sessions, keys and sandboxes here
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Talk to this server (http://… or https://…), with the key in `ATOLL_API_KEY`
    #[arg(long, global = true, value_name = "URL", help_heading = "Global options")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(commands::run::Arguments),
    Exec(commands::exec::Arguments),
    Sh(commands::sh::Arguments),
    Cp(commands::cp::Arguments),
    PortForward(commands::port_forward::Arguments),
    Logs(commands::logs::Arguments),
    Ps(commands::ps::Arguments),
    #[command(subcommand)]
    File(commands::file::Command),
    #[command(subcommand)]
    Session(commands::session::Command),
    Serve(commands::serve::Arguments),
    #[command(subcommand)]
    Daemon(commands::daemon::Command),
    Doctor(commands::doctor::Arguments),
    Engines(commands::engines::Arguments),
    #[command(subcommand)]
    Env(commands::environment::Command),
    #[command(subcommand)]
    Key(commands::key::Command),
    Prune(commands::prune::Arguments),
    #[command(subcommand)]
    Config(commands::config::Command),
    Completions(commands::completions::Arguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_and_shows_how() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "{path} has no description");
            let mut inner = command.get_subcommands().peekable();
            if inner.peek().is_none() {
                assert!(command.get_after_help().is_some(), "{path} has no example");
            }
            inner.for_each(|command| check(command, &path));
        }
        check(&Arguments::command(), "");
    }
}
