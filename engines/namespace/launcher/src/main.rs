//! Makes one sandbox of the namespace engine: a process tree of its own, on a root of its own.
//!
//! A program of its own, because a process with threads (the daemon) cannot enter a user
//! namespace, and a small one, because it may run as root: it clones the sandbox's first process into
//! new namespaces ([`parent`]), which builds its root from inside ([`child`]) and becomes the
//! agent. Then it reports and exits; nothing depends on it afterwards.

mod child;
mod devices;
mod failure;
mod groups;
mod identity;
mod mapped;
mod mounts;
mod numbers;
mod ordinary;
mod parent;
mod proc;
mod root;
mod shared;
mod sys;

use std::{os::fd::AsFd as _, process::ExitCode};

fn main() -> ExitCode {
    match parent::launch(std::io::stdin().as_fd()) {
        Ok(()) => ExitCode::SUCCESS,
        // Who started this is gone: there is nobody to tell.
        Err(_) => ExitCode::FAILURE,
    }
}
