//! New names: random, short enough to read out, and plain words for every kernel object.

use atoll_types::id::{SandboxId, SessionId};

/// Digits and letters without the ones that look alike.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// That many letters, of five random bits each.
pub(crate) fn random(letters: usize) -> String {
    let mut bytes = vec![0; letters];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
    encode(&bytes)
}

/// One letter for the low five bits of each byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 31)])).collect()
}

pub(crate) fn session() -> SessionId {
    random(16).try_into().expect("sixteen letters are an id")
}

pub(crate) fn sandbox() -> SandboxId {
    random(16).try_into().expect("sixteen letters are an id")
}

pub(crate) fn execution() -> String {
    random(16)
}
