//! `atoll file`.

use std::process::Stdio;

use serde_json::Value;

use crate::{
    Case,
    atoll::{Atoll, Running},
};

pub(crate) const CASES: &[Case] = &[
    ("files_and_lines_are_found", found),
    ("a_search_that_finds_nothing_is_1", nothing),
    ("text_is_replaced_or_nothing_is", edits),
    ("what_happens_to_files_is_told_as_it_happens", watch),
];

fn prepared(atoll: &Atoll) -> String {
    let session = atoll.session(&[]);
    let line = "mkdir src; echo 'x = 1 # TODO' > src/a.py; echo plain > b.txt";
    atoll.ok(&["exec", &session, "--", "sh", "-c", line]);
    session
}

fn found() {
    let atoll = Atoll::new();
    let session = prepared(&atoll);

    let names = atoll.ok(&["file", "glob", &session, "**/*.py", "--table"]);
    let lines = atoll.ok(&["file", "grep", &session, "TODO", "--table"]);
    let json = atoll.json(&["file", "grep", &session, "-i", "todo", "src", "--glob", "*.py"]);

    assert!(names.ends_with("/src/a.py\n") && names.lines().count() == 1, "{names}");
    assert!(lines.ends_with("/src/a.py:1:9:x = 1 # TODO\n"), "{lines}");
    assert_eq!(json["matches"][0]["line"], 1);
}

fn nothing() {
    let atoll = Atoll::new();
    let session = prepared(&atoll);

    let names = atoll.run(&["file", "glob", &session, "*.rs", "--table"]);
    let lines = atoll.run(&["file", "grep", &session, "absent"]);
    let wrong = atoll.run(&["file", "grep", &session, "a("]);

    assert_eq!((names.code, names.text().as_str()), (1, ""), "{names:?}");
    assert_eq!(lines.code, 1, "{lines:?}");
    assert_eq!(wrong.code, 125, "{wrong:?}");
}

fn edits() {
    let atoll = Atoll::new();
    let session = prepared(&atoll);

    let done = atoll.ok(&["file", "edit", &session, "src/a.py", "x = 1", "x = 2", "--table"]);
    let wrong = atoll.run(&["file", "edit", &session, "src/a.py", "x = 1", "x = 3"]);

    assert_eq!(done, "replaced 1 place\n");
    assert_eq!(wrong.code, 125, "{wrong:?}");
    assert!(wrong.stderr.contains("not in the file"), "{wrong:?}");
    assert_eq!(atoll.ok(&["exec", &session, "--", "cat", "src/a.py"]), "x = 2 # TODO\n");
}

fn watch() {
    let atoll = Atoll::new();
    let session = prepared(&atoll);
    let mut command = atoll.command(&["file", "watch", &session, "src", "-r"]);
    let mut watching = Running::start(command.stderr(Stdio::piped()));
    // It says so once it watches.
    let mut said = Vec::new();
    while !said.ends_with(b"watching src\n") {
        let mut byte = [0];
        let stderr = watching.child().stderr.as_mut().unwrap();
        assert_eq!(std::io::Read::read(stderr, &mut byte).unwrap(), 1);
        said.push(byte[0]);
    }

    atoll.ok(&["exec", &session, "--", "sh", "-c", "mkdir src/new; rm -r src"]);

    let first: Value = serde_json::from_str(&watching.line()).unwrap();
    assert_eq!((&first["type"], &first["directory"]), (&"created".into(), &true.into()));
    let ended = watching.finish();
    assert_eq!(ended.code, 0, "{ended:?}");
    let last: Value = serde_json::from_str(ended.text().lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "removed");
    assert!(last["path"].as_str().unwrap().ends_with("/src"), "{last}");
}
