//! The program inside a sandbox that hosts talk to: it starts processes, keeps what they write and
//! handles files, all with the rights of the sandbox's own user.
//!
//! It links nothing, reads no environment and no configuration, and never runs a program of the
//! sandbox for its own sake. Everything it needs to know comes in one message; see [`boot`]. Where
//! nobody can hand it descriptors it is `atoll-agent serve DIRECTORY`.

mod agent;
mod boot;
mod calls;
mod failure;
mod files;
mod launch;
mod ports;
mod process;
mod sys;

use std::{io, process::ExitCode, sync::Arc};

use agent::Agent;
use launch::Launcher;
use process::{Starter, Table};
use sys::Fork;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = io::Write::write_all(
                &mut io::stderr(),
                format!("atoll-agent: {error}\n").as_bytes(),
            );
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut setup = boot::read(&std::env::args_os().skip(1).collect::<Vec<_>>())?;
    boot::harden(&setup.guests)?;
    let (ours, spawners) = Launcher::connection()?;
    // Before anything here can start a thread.
    let spawner = match setup.guests.own_pids {
        0 => sys::fork()?,
        _ => sys::fork_as(launch::SPAWNER)?,
    };
    if let Fork::Child = spawner {
        drop((ours, setup.listener));
        launch::run_spawner(spawners, &setup.guests);
    }
    drop(spawners);
    setup.guests.cgroups.clear();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let starter = Starter {
            launcher: Launcher::new(ours, setup.guests.user)?,
            table: Table::default(),
            home: setup.home.clone(),
            env: setup.env,
        };
        let files = files::Files::new(setup.home, setup.guests);
        let agent =
            Agent { starter: Arc::new(starter), files, disk: setup.disk, tunnels: ports::places() };
        agent::serve(Arc::new(agent), setup.listener).await
    })
}
