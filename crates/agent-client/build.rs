//! Builds the agent, so that it can be carried inside.

fn main() {
    let agent = atoll_static_program::build(
        "atoll-agent",
        &["crates/agent", "crates/agent-protocol", "crates/archive", "rust-toolchain.toml"],
    );
    println!("cargo::rustc-env=ATOLL_AGENT={}", agent.display());
}
