//! The calls to the kernel that no safe wrapper offers. Nothing here decides anything.

mod landlock;
mod process;
mod seal;

pub(crate) use landlock::{Ruleset, landlock_version};
pub(crate) use process::{
    Fork, adopt, borrow, child_signals, close_from, execute, exit, fork, fork_as, ignore_signals,
    install_at, reset_signals, send_signal, watch,
};
pub(crate) use seal::{
    as_file_system_user, drop_bounding_set, install_seccomp, limit, limits_of_files,
    raise_limit_of_files, set_file_system_user,
};
