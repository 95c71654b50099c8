//! Builds the launcher, so that it can be carried inside.

fn main() {
    let launcher = atoll_static_program::build(
        "atoll-launcher",
        &["engines/namespace/launcher", "rust-toolchain.toml"],
    );
    println!("cargo::rustc-env=ATOLL_LAUNCHER={}", launcher.display());
}
