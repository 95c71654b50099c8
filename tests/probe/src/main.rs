//! A hostile guest: one static program whose sub-commands each try something a sandbox must
//! contain, and print what came of it as JSON. It never does harm where it succeeds.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "arguments of system calls are machine words, whatever they mean"
)]
#![expect(clippy::print_stdout, reason = "evidence is this program's output")]

mod agent;
mod answer;
mod channel;
mod load;
mod lure;
mod network;
mod posture;
mod privilege;
mod stream;
mod sweep;
mod sys;
mod system;
mod terminal;
mod tree;
mod word;

use std::{process::ExitCode, time::Duration};

use serde_json::{Value, json};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = words.split_first() else { return ExitCode::from(2) };
    if let Some(evidence) = evidence(name, rest) {
        println!("{evidence}");
        return ExitCode::SUCCESS;
    }
    ExitCode::from(act(name, rest).unwrap_or(2))
}

/// Sub-commands that look, try and tell. None if this is not one of them.
fn evidence(name: &str, rest: &[String]) -> Option<Value> {
    let word = |index: usize| rest.get(index).map(String::as_str).unwrap_or_default();
    let number = |index: usize| word(index).parse::<u64>().unwrap_or(0);
    let count = |index: usize| usize::try_from(number(index)).unwrap_or(0);
    Some(match name {
        "posture" => posture::all(),
        "threads" => posture::threads(u32::try_from(number(0)).unwrap_or(0)),
        "environment" => json!(posture::environment()),
        "identity" => identity(),
        "mounts" => privilege::mounts(word(0), word(1) == "nested"),
        "overwrite" => privilege::overwrite(word(0)),
        "namespaces" => privilege::namespaces(),
        "nested" => privilege::nested(),
        "sockets" => privilege::sockets(),
        "keys" => privilege::keys(),
        "sweep" => sweep::native(),
        "sweep-x32" => sweep::x32(),
        "sweep-legacy" => sweep::legacy(),
        "signal-strangers" => agent::signals(),
        "peek-strangers" => agent::peeks(),
        "limit-strangers" => agent::limits(),
        "switches" => system::switches(),
        "secrets" => system::secrets(),
        "processes" => system::processes(),
        "mount-table" => system::mounts(),
        "control-groups" => system::control_groups(rest),
        "hear" => channel::hear(word(0)),
        "reach" => network::reach(rest),
        "surroundings" => network::surroundings(),
        "listeners" => lure::listeners(),
        "steal-terminals" => terminal::steal(),
        "key-presses" => terminal::keys(),
        "fill" => load::fill(word(0), number(1)),
        "reserve" => load::reserve(word(0), count(1)),
        "sparse" => load::sparse(word(0), number(1)),
        "many-files" => load::many_files(word(0), number(1)),
        "forks" => tree::forks(count(0)),
        "many-threads" => tree::threads(count(0)),
        "churn" => tree::churn(count(0), count(1)),
        "zombies" => tree::zombies(count(0), word(1) == "living"),
        _ => return None,
    })
}

/// Sub-commands that do something for a while. None if this is not one of them.
fn act(name: &str, rest: &[String]) -> Option<u8> {
    let word = |index: usize| rest.get(index).map(String::as_str).unwrap_or_default();
    let number = |index: usize| word(index).parse::<u64>().unwrap_or(0);
    let count = |index: usize| usize::try_from(number(index)).unwrap_or(0);
    let has = |flag: &str| rest.iter().any(|word| word == flag);
    let mut well = true;
    match name {
        "tell" => channel::tell(word(0)),
        "answer" => answer::answer(word(0).parse().ok()?, word(1))?,
        "lure" => lure::lure(word(0).parse().ok()?, word(1)),
        "spin" => load::spin(number(0), count(1).max(1)),
        "sleep" => std::thread::sleep(Duration::from_secs(number(0))),
        "stubborn" => load::stubborn(number(0)),
        "short-children" => load::short_children(word(0).parse().unwrap_or(0.0)),
        "stopped" => load::stopped(number(0)),
        "allocate" => load::allocate(count(0)),
        "allocate-together" => load::allocate_together(count(0), count(1)),
        "daemon" => tree::daemon(number(0), has),
        "refork" => tree::refork(count(0), number(1), has("staying")),
        "reuse" => tree::reuse(i32::try_from(number(0)).ok()?, number(1)),
        "heartbeat" => tree::heartbeat(word(0)),
        "flood" => well = stream::flood(number(0), has("lines"), has("both")),
        "drip" => well = stream::drip(number(0)),
        "forge" => {
            stream::forge();
            return Some(7);
        }
        "flip" => stream::flip(word(0), word(1)),
        _ => return None,
    }
    Some(u8::from(!well))
}

/// Who this is, for programs that were to become somebody else (H05, C09, J07).
fn identity() -> Value {
    let all = posture::all();
    json!({
        "process": std::process::id(), "user": all["user"], "group": all["group"],
        "capabilities": all["capabilities"],
    })
}
