//! For build scripts: builds a program of this workspace that links nothing.
//!
//! The agent and the launcher run where no library can be counted on, so they are static musl
//! programs, and `atoll` carries them inside itself. Cargo cannot yet depend on another package's
//! program for another target, so a build script runs cargo once more. The inner target directory
//! is shared by all profiles: the program is the same in each.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Builds the binary `package` (a package of this workspace, found at `source`) and returns where
/// it is. Panics if it cannot, as build scripts do.
///
/// `watched` are the directories, relative to the workspace, whose change makes it build again.
#[expect(clippy::disallowed_methods, reason = "a build script's arguments are its environment")]
#[expect(clippy::print_stdout, reason = "a build script tells cargo by printing")]
pub fn build(package: &str, watched: &[&str]) -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = format!("{}-unknown-linux-musl", env::var("CARGO_CFG_TARGET_ARCH").expect("set"));
    // OUT_DIR is target/<profile>/build/<package>-<hash>/out.
    let directory = out.ancestors().nth(4).expect("OUT_DIR is deep").join("static");

    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"));
    cargo
        .current_dir(&workspace)
        .args(["build", "--locked", "--profile", "static", "--package", package])
        .args(["--target", &target, "--target-dir"])
        .arg(&directory);
    for (name, _) in env::vars_os() {
        // What cargo set for this script, clippy's wrapper and flags meant for the host do not
        // belong to the inner build.
        let text = name.to_string_lossy();
        let kept = ["CARGO_HOME", "CARGO_INCREMENTAL", "CARGO_NET_OFFLINE"].contains(&&*text)
            || text.starts_with("CARGO_REGISTRIES_")
            || text.starts_with("CARGO_REGISTRY_");
        if !kept && (text.starts_with("CARGO") || text.starts_with("RUSTC") || text == "RUSTFLAGS")
        {
            cargo.env_remove(&name);
        }
    }
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "{package} did not build for {target}");

    for path in watched.iter().chain(&["Cargo.lock", "Cargo.toml"]) {
        println!("cargo::rerun-if-changed={}", workspace.join(path).display());
    }
    directory.join(target).join("static").join(package)
}
