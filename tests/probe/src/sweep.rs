//! Every system call there is, with nothing but zeroes (H07, H08).

use serde_json::{Map, Value, json};

use crate::{
    sys::{self, Outcome},
    word,
};

/// Above the newest number any kernel knows today, so that a filter's answer to the unknown shows.
const LAST: i64 = 600;

/// Marks a number as one of the x32 interface.
const X32: i64 = 0x4000_0000;

/// The native interface.
pub(crate) fn native() -> Value {
    table(0..=LAST, |number| match number {
        // Writes out every file system of the machine: nobody's test should wait for that.
        libc::SYS_sync => "not called".to_owned(),
        libc::SYS_vfork => word::outcome(sys::isolated(sys::vfork)),
        number => word::outcome(zeroes(number)),
    })
}

/// The x32 interface: the same numbers with a bit set.
pub(crate) fn x32() -> Value {
    table(0..=LAST, |number| word::outcome(zeroes(number | X32)))
}

/// The 32-bit interface through `int 0x80`: calls that answer anybody.
pub(crate) fn legacy() -> Value {
    let calls = [("getpid", 20), ("time", 13), ("getuid", 24), ("mount", 21), ("ptrace", 26)];
    let answers: Map<String, Value> = calls
        .iter()
        .map(|&(name, number)| {
            let outcome = sys::isolated(|| sys::legacy_call(number));
            (name.to_owned(), json!(word::outcome(outcome)))
        })
        .collect();
    Value::Object(answers)
}

fn table(numbers: impl Iterator<Item = i64>, call: impl Fn(i64) -> String) -> Value {
    Value::Object(numbers.map(|number| (format!("{number:03}"), json!(call(number)))).collect())
}

fn zeroes(number: i64) -> Outcome {
    sys::isolated(|| {
        sys::interrupt_often();
        let answer = sys::call(number, [0; 6]);
        if [libc::SYS_fork, libc::SYS_clone].contains(&(number & !X32)) && answer == Ok(0) {
            sys::leave(0);
        }
        answer
    })
}
