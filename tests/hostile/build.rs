//! Builds the probe that the checks run inside sandboxes.

fn main() {
    let probe = atoll_static_program::build("atoll-probe", &["tests/probe"]);
    println!("cargo::rustc-env=ATOLL_PROBE={}", probe.display());
}
