//! What needs no server and no engine.

use crate::{Case, atoll::Atoll};

pub(crate) const CASES: &[Case] = &[
    ("a_command_line_that_makes_no_sense_is_2", usage),
    ("the_defaults_are_settings_that_can_be_used", defaults),
    ("a_misspelled_setting_is_an_error_with_a_hint", misspelled),
    ("where_a_setting_came_from_is_shown", origin),
    ("completions_are_printed", completions),
    ("what_cannot_be_looked_into_is_not_empty", not_empty),
    ("a_run_of_nothing_says_what_to_give", nothing_to_run),
    ("listing_nothing_starts_nothing", lists_nothing),
    ("the_doctor_needs_no_server", doctor),
    ("a_terminal_needs_a_terminal", no_terminal),
    ("help_has_examples", help),
];

fn usage() {
    let atoll = Atoll::new();
    for wrong in [
        &["run"][..],
        &["frobnicate"],
        &["run", "-c", "1", "--memory", "lots"],
        &["run", "-c", "1", "-v", "nowhere"],
        &["exec", "s-1"],
        &["cp", "a", "b"],
        &["session", "show", "Not/An/Id"],
    ] {
        let ended = atoll.run(wrong);
        assert_eq!(ended.code, 2, "{wrong:?}: {ended:?}");
        assert!(ended.stderr.starts_with("error: "), "{wrong:?}: {ended:?}");
    }
}

fn defaults() {
    let atoll = Atoll::new();
    std::fs::write(atoll.path("config.toml"), atoll.ok(&["config", "default"])).unwrap();

    let shown = atoll.json(&["--config", "config.toml", "config", "show"]);

    assert_eq!(shown["server.listen"]["value"], "127.0.0.1:8000");
    assert_eq!(shown["server.listen"]["from"], "file");
}

fn misspelled() {
    let atoll = Atoll::new();
    std::fs::write(atoll.path("config.toml"), "[server]\nlisen = '127.0.0.1:1'").unwrap();

    let ended = atoll.run(&["--config", "config.toml", "config", "show"]);

    assert_eq!(ended.code, 125);
    assert!(ended.stderr.contains("`server.lisen`"), "{ended:?}");
    assert!(ended.stderr.ends_with("hint: did you mean `server.listen`?\n"), "{ended:?}");
}

fn origin() {
    let atoll = Atoll::new().with("ATOLL_LOG", "info");

    let shown = atoll.json(&["config", "show"]);

    assert_eq!(shown["log"]["from"], "ATOLL_LOG");
    assert_eq!(shown["sessions.engine"]["from"], "default");
}

fn completions() {
    let atoll = Atoll::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(atoll.ok(&["completions", shell]).contains("session"), "{shell}");
    }
}

fn lists_nothing() {
    let atoll = Atoll::new();

    assert_eq!(atoll.ok(&["session", "ls"]), "[]\n");
    assert!(!atoll.path(".local").exists());
}

fn not_empty() {
    let atoll = Atoll::new();
    std::fs::write(atoll.path("file"), "").unwrap();

    let ended = atoll.run(&["--data-dir", "file", "session", "ls"]);

    assert_eq!((ended.code, ended.text().as_str()), (125, ""), "{ended:?}");
}

fn nothing_to_run() {
    let atoll = Atoll::new();

    let ended = atoll.run(&["run"]);

    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("-c, a FILE, or - for standard input"), "{ended:?}");
}

fn doctor() {
    let atoll = Atoll::new();

    // Whether this machine is ready is not the question.
    let ended = atoll.run(&["doctor", "--json"]);

    let report: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let names: Vec<_> =
        report["engines"].as_array().unwrap().iter().map(|engine| &engine["name"]).collect();
    assert_eq!(names, ["namespace", "docker", "local"]);
    assert_eq!(report["versions"][0]["name"], "kernel");
    assert!(report["versions"][0]["version"].is_string(), "{report}");
    assert_eq!(report["host"][0]["name"], "user namespaces");
    assert_eq!(ended.code == 0, report["healthy"] == true, "{ended:?}");
    assert!(!atoll.path(".local").exists(), "looking changes nothing");
}

fn no_terminal() {
    let atoll = Atoll::new();

    for arguments in [&["sh"][..], &["sh", "some-session"], &["exec", "-t", "s", "--", "ls"]] {
        let ended = atoll.run(arguments);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.stderr.contains("this needs a terminal"), "{ended:?}");
    }
    let flags = atoll.run(&["sh", "some-session", "--memory", "64m"]);
    assert_eq!(flags.code, 2, "{flags:?}");
    assert!(!atoll.path(".local").exists(), "nothing was started");
}

fn help() {
    let atoll = Atoll::new();

    assert!(atoll.ok(&["run", "--help"]).contains("Examples:"));
}
