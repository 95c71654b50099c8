//! The limits of the `namespace` engine where control groups are version 2: in a small virtual
//! machine, because a host has one version or the other.
//!
//! What is left out needs programs that machine has not, or compares times, which emulation makes
//! meaningless.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use libtest_mimic::{Arguments, Failed, Trial};

const LEFT_OUT: [&str; 6] = [
    "limits::open_files_are_limited",
    "limits::a_full_disk_is_told",
    "limits::what_is_not_limited_is_not_limited",
    "limits::half_a_processor_is_half_as_fast",
    "limits::memory_of_all_processes_counts_together",
    "limits::processor_time_not_used_is_not_counted",
];

#[expect(clippy::disallowed_methods, reason = "tests have no settings of their own")]
fn main() -> ExitCode {
    let required = std::env::var_os("ATOLL_REQUIRE_ENGINES").is_some();
    let kernel = PathBuf::from(std::env::var_os("HOME").unwrap_or_default())
        .join(".cache/atoll/guest/vmlinuz");
    let trials = [
        ("limits_hold_on_version_2", "conformance"),
        ("limits_hold_for_an_ordinary_user_with_a_group", "conformance_delegated"),
    ];
    let trials = trials.map(|(name, suite)| {
        Trial::test(name, move || limits_hold(suite))
            .with_ignored_flag(!kernel.exists() && !required)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

fn limits_hold(name: &str) -> Result<(), Failed> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut guest = Command::new(workspace.join("scripts/guest"));
    guest.arg(suite(&workspace, name)?).args([
        "limits::",
        "--test-threads",
        "1",
        "--color",
        "never",
    ]);
    for case in LEFT_OUT {
        guest.args(["--skip", case]);
    }
    let output = guest.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = text.contains("test result: ok. 9 passed; 0 failed");
    if output.status.success() && passed {
        return Ok(());
    }
    Err(format!("{}\n{text}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

/// One of the engine's conformance suites, built as the rest of the workspace is.
fn suite(workspace: &Path, name: &str) -> Result<PathBuf, Failed> {
    let output = Command::new(env!("CARGO"))
        .current_dir(workspace)
        .args(["test", "--workspace", "--locked", "--test", name, "--no-run"])
        .arg("--message-format=json")
        .output()?;
    let messages = String::from_utf8(output.stdout)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["manifest_path"].as_str().is_some_and(of_namespace))
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| format!("no suite: {}", String::from_utf8_lossy(&output.stderr)).into())
}

fn of_namespace(manifest: &str) -> bool {
    manifest.ends_with("engines/namespace/Cargo.toml")
}
