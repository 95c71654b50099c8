//! Facts committed beside the checks, so that a change of them is a change in review.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::subject::Subject;

/// Set to write the snapshots instead of comparing with them.
const UPDATE: &str = "ATOLL_UPDATE_SNAPSHOTS";

/// What was committed for an engine under this name; `now` is written there first if that is
/// asked for.
///
/// What was committed is part of this program, since whoever runs it may not be able to read it.
pub fn committed(subject: &dyn Subject, name: &str, now: &Value) -> Result<Value> {
    #[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests")]
    if std::env::var_os(UPDATE).is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(subject.name());
        fs::write(path.join(name), format!("{}\n", serde_json::to_string_pretty(now)?))?;
        return Ok(now.clone());
    }
    let text = match (subject.name(), name) {
        ("namespace", "posture.json") => include_str!("../snapshots/namespace/posture.json"),
        ("namespace", "syscalls.json") => include_str!("../snapshots/namespace/syscalls.json"),
        ("docker", "posture.json") => include_str!("../snapshots/docker/posture.json"),
        ("docker", "syscalls.json") => include_str!("../snapshots/docker/syscalls.json"),
        ("ordinary", "posture.json") => include_str!("../snapshots/ordinary/posture.json"),
        ("ordinary", "syscalls.json") => include_str!("../snapshots/ordinary/syscalls.json"),
        (subject, name) => anyhow::bail!("nothing is committed of {subject} as {name}"),
    };
    serde_json::from_str(text).with_context(|| format!("snapshot {name}"))
}

/// The paths and values in which two values differ.
pub fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut all = Vec::new();
    compare("", expected, found, &mut all);
    all
}

fn compare(path: &str, expected: &Value, found: &Value, all: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let (one, other) = (one.get(key), other.get(key));
                let none = Value::Null;
                compare(
                    &format!("{path}/{key}"),
                    one.unwrap_or(&none),
                    other.unwrap_or(&none),
                    all,
                );
            }
        }
        (one, other) if one == other => {}
        (one, other) => all.push(format!("{path}: committed {one}, found {other}")),
    }
}
