//! `atoll session` and `atoll exec`.

use rustix::process::Signal;

use crate::{
    Case,
    atoll::{Atoll, Running},
};

pub(crate) const CASES: &[Case] = &[
    ("a_session_keeps_its_files", keeps_files),
    ("an_ended_session_is_not_found", ended),
    ("an_exec_passes_output_input_and_exit_code_on", exec),
    ("a_missing_program_is_127", missing_program),
    ("an_interrupted_exec_ends_the_command_and_keeps_the_session", interrupted),
    ("a_session_is_shown_with_what_it_uses", shown),
    ("sessions_are_filtered_by_metadata", metadata),
    ("code_runs_in_a_session", code),
];

fn keeps_files() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);

    atoll.ok(&["exec", &session, "--", "sh", "-c", "echo kept > note"]);

    assert_eq!(atoll.ok(&["exec", &session, "--", "cat", "note"]), "kept\n");
}

fn ended() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);

    atoll.ok(&["session", "rm", &session]);
    let again = atoll.run(&["session", "rm", &session]);
    let exec = atoll.run(&["exec", &session, "--", "true"]);

    assert_eq!(again.code, 125, "{again:?}");
    assert_eq!(exec.code, 125, "{exec:?}");
    assert!(again.stderr.starts_with("error: "), "{again:?}");
}

fn exec() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let line = "cat; echo aside >&2; exit 7";

    let ended = atoll.feed(&["exec", &session, "--", "sh", "-c", line], b"through\n");

    assert_eq!((ended.code, ended.text().as_str()), (7, "through\n"));
    assert_eq!(ended.stderr, "aside\n");
}

fn missing_program() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);

    let ended = atoll.run(&["exec", &session, "--", "no-such-program"]);

    assert_eq!(ended.code, 127, "{ended:?}");
}

fn interrupted() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let line = "echo begun; exec sleep 1000";
    let mut running =
        Running::start(&mut atoll.command(&["exec", &session, "--", "sh", "-c", line]));
    assert_eq!(running.line(), "begun");

    running.signal(Signal::INT);

    assert_eq!(running.finish().code, 130);
    let left = atoll.ok(&["exec", &session, "--", "sh", "-c", "cat /proc/[0-9]*/comm"]);
    assert!(!left.contains("sleep"), "{left}");
}

fn shown() {
    let atoll = Atoll::new();
    let session = atoll.session(&["--memory", "128m"]);

    let shown = atoll.json(&["session", "show", &session]);

    assert_eq!(shown["session"]["session_id"], session.as_str());
    assert_eq!(shown["session"]["engine"], "namespace");
    assert_eq!(shown["session"]["limits"]["memory"], 128 << 20);
    assert!(shown["metrics"].is_object(), "{shown}");
}

fn metadata() {
    let atoll = Atoll::new();
    let one = atoll.session(&["--metadata", "task=1"]);
    atoll.session(&["--metadata", "task=2"]);

    let found = atoll.json(&["session", "ls", "--metadata", "task=1"]);

    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found[0]["session_id"], one.as_str());
}

fn code() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);

    let printed = atoll.ok(&["exec", &session, "-l", "python", "-c", "print(2 ** 10)"]);

    assert_eq!(printed, "1024\n");
}
