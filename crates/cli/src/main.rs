//! The `atoll` program: the command line, the server, and the only place that names every engine.

mod arguments;
mod commands;
mod copy;
mod doctor;
mod failure;
mod follow;
mod invocation;
mod journal;
mod output;
mod part;
mod prepare;
mod printer;
mod progress;
mod report;
mod scroll;
mod server;
mod signal;
mod terminal;
mod witness;
mod words;

use std::process::ExitCode;

use atoll_config::Surroundings;
use clap::Parser as _;

use crate::{
    arguments::{Arguments, Command},
    failure::{Doing as _, Result},
    invocation::Invocation,
    printer::Printer,
    signal::End,
};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let background =
        matches!(arguments.command, Command::Daemon(commands::daemon::Command::Run(_)));
    if background {
        server::close_inherited();
    }
    let surroundings = Surroundings::of_process();
    let printer = Printer::new(&arguments.globals, &surroundings);
    match run(arguments, surroundings) {
        Ok(End::Code(code)) => code.into(),
        Ok(End::Asked(asked)) => {
            asked.obey();
            asked.code().into()
        }
        Err(failure) => {
            if background {
                server::Word::from(&failure).say();
            }
            printer.failure(&failure);
            failure.code.into()
        }
    }
}

fn run(arguments: Arguments, surroundings: Surroundings) -> Result<End> {
    let serves = matches!(
        arguments.command,
        Command::Serve(_) | Command::Daemon(commands::daemon::Command::Run(_))
    );
    let mut builder = if serves {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = builder.enable_all().build().doing(|| "cannot start".into())?;
    let ended = runtime.block_on(dispatch(arguments, surroundings));
    // A read of standard input that nobody waits for must not hold us up.
    runtime.shutdown_background();
    ended
}

async fn dispatch(arguments: Arguments, surroundings: Surroundings) -> Result<End> {
    let Arguments { globals, command } = arguments;
    let invocation = Invocation::new(&globals, surroundings, |flags| match &command {
        Command::Serve(arguments) => arguments.set(flags),
        _ => Ok(()),
    })?;
    let invocation = &invocation;
    let code = match command {
        Command::Run(arguments) => return commands::run::run(arguments, invocation).await,
        Command::Exec(arguments) => return commands::exec::run(arguments, invocation).await,
        Command::Sh(arguments) => return commands::sh::run(arguments, invocation).await,
        Command::Cp(arguments) => return commands::cp::run(arguments, invocation).await,
        Command::PortForward(arguments) => commands::port_forward::run(arguments, invocation).await,
        Command::Logs(arguments) => commands::logs::run(arguments, invocation).await,
        Command::Ps(arguments) => commands::ps::run(arguments, invocation).await,
        Command::File(command) => return commands::file::run(command, invocation).await,
        Command::Session(command) => commands::session::run(command, invocation).await,
        Command::Serve(_) => commands::serve::run(invocation).await,
        Command::Daemon(command) => commands::daemon::run(command, invocation).await,
        Command::Doctor(arguments) => commands::doctor::run(arguments, invocation).await,
        Command::Engines(arguments) => commands::engines::run(arguments, invocation).await,
        Command::Env(command) => commands::environment::run(command, invocation).await,
        Command::Key(command) => commands::key::run(command, invocation).await,
        Command::Prune(arguments) => commands::prune::run(arguments, invocation).await,
        Command::Config(command) => commands::config::run(&command, invocation),
        Command::Completions(arguments) => commands::completions::run(&arguments),
    }?;
    Ok(End::Code(code))
}
