//! `atoll run`.

use rustix::process::Signal;

use crate::{
    Case,
    atoll::{Atoll, Running},
};

pub(crate) const CASES: &[Case] = &[
    ("run_prints_what_the_program_prints", prints),
    ("an_exit_code_is_passed_on", exit_code),
    ("a_signal_is_128_and_its_number", signal),
    ("a_timeout_is_told_from_other_ends", timeout),
    ("the_longest_timeout_is_allowed", longest),
    ("running_out_of_memory_is_told_from_other_ends", memory),
    ("every_byte_of_output_survives", bytes),
    ("standard_input_is_passed_on", stdin),
    ("code_comes_from_standard_input", code_from_stdin),
    ("a_file_runs_with_its_arguments", file),
    ("a_file_whose_name_tells_no_language_needs_one_said", no_language),
    ("asked_for_json_a_run_is_one_object", json),
    ("the_current_directory_is_shown_when_asked_for", here),
    ("variables_are_those_given_and_no_others", variables),
    ("an_interrupted_run_leaves_nothing", interrupted),
    ("a_killed_run_is_pruned", killed),
    ("a_run_leaves_no_session", leaves_nothing),
    ("an_engine_without_isolation_is_refused", not_isolating),
];

fn prints() {
    let atoll = Atoll::new();

    let ended = atoll.run(&["run", "-c", "print(6 * 7)"]);

    assert_eq!((ended.code, ended.text().as_str(), ended.stderr.as_str()), (0, "42\n", ""));
}

fn exit_code() {
    let atoll = Atoll::new();
    for code in [0, 1, 3, 124, 255] {
        let ended = atoll.run(&["run", "-l", "sh", "-c", &format!("exit {code}")]);

        assert_eq!(ended.code, code, "{ended:?}");
    }
}

fn signal() {
    let atoll = Atoll::new();

    let ended = atoll.run(&["run", "-l", "sh", "-c", "kill -SEGV $$"]);

    assert_eq!(ended.code, 139, "{ended:?}");
    assert_eq!(ended.stderr, "atoll: ended by signal 11 (SIGSEGV)\n");
}

fn timeout() {
    let atoll = Atoll::new();

    let ended = atoll.run(&["run", "--timeout", "1s", "-c", "while True: pass"]);

    assert_eq!(ended.code, 124, "{ended:?}");
    assert!(ended.stderr.contains("timeout"), "{ended:?}");
    assert!(ended.stderr.contains("\nhint: "), "{ended:?}");
}

fn longest() {
    let atoll = Atoll::new();

    let allowed = atoll.run(&["run", "--timeout", "24h", "-c", "print(1)"]);
    let refused = atoll.run(&["run", "--timeout", "25h", "-c", "print(1)"]);

    assert_eq!((allowed.code, allowed.text().as_str()), (0, "1\n"), "{allowed:?}");
    assert_eq!(refused.code, 125, "{refused:?}");
    assert!(refused.stderr.contains("90000"), "{refused:?}");
}

fn memory() {
    let atoll = Atoll::new();

    let ended = atoll.run(&["run", "--memory", "64m", "-c", "x = bytearray(512 << 20)"]);

    assert_eq!(ended.code, 137, "{ended:?}");
    assert!(ended.stderr.contains("out of memory"), "{ended:?}");
}

fn bytes() {
    let atoll = Atoll::new();
    let code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 64)";

    let ended = atoll.run(&["run", "-c", code]);

    let expected: Vec<u8> = (0..64).flat_map(|_| 0..=255).collect();
    assert_eq!(ended.stdout, expected);
}

fn stdin() {
    let atoll = Atoll::new();
    let input = "abc\n".repeat(100_000);

    let ended =
        atoll.feed(&["run", "-c", "import sys; print(len(sys.stdin.read()))"], input.as_bytes());

    assert_eq!(ended.text(), "400000\n", "{}", ended.stderr);
}

fn code_from_stdin() {
    let atoll = Atoll::new();

    let ended = atoll.feed(&["run", "-l", "bash", "-", "--", "one", "two"], b"echo $2 $1");

    assert_eq!(ended.text(), "two one\n", "{}", ended.stderr);
}

fn file() {
    let atoll = Atoll::new();
    std::fs::write(atoll.path("script.py"), "import sys; print(sys.argv)").unwrap();

    let ended = atoll.run(&["run", "script.py", "--", "--fast", "a b"]);

    assert_eq!(ended.text(), "['script.py', '--fast', 'a b']\n", "{}", ended.stderr);
}

fn no_language() {
    let atoll = Atoll::new();
    std::fs::write(atoll.path("script"), "echo $1").unwrap();

    let unsaid = atoll.run(&["run", "script"]);
    let said = atoll.run(&["run", "-l", "sh", "script", "--", "one"]);

    assert_eq!(unsaid.code, 125, "{unsaid:?}");
    assert!(unsaid.stderr.contains("hint: say it with -l"), "{unsaid:?}");
    assert_eq!(said.text(), "one\n", "{}", said.stderr);
}

fn json() {
    let atoll = Atoll::new();
    let code = "echo out; echo err >&2; exit 3";

    let ended = atoll.run(&["run", "--json", "-l", "sh", "-c", code]);
    let failed = atoll.run(&["run", "--json", "-l", "cobol", "-c", "x"]);

    let result: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((ended.code, ended.stderr.as_str()), (3, ""), "{result}");
    assert_eq!((&result["stdout"], &result["stderr"]), (&"out\n".into(), &"err\n".into()));
    assert_eq!((&result["exit_code"], &result["reason"]), (&3.into(), &"exited".into()));
    let problem: serde_json::Value = serde_json::from_str(&failed.stderr).unwrap();
    assert_eq!((failed.code, failed.text().as_str()), (125, ""), "{problem}");
    assert_eq!(problem["error"]["code"], "invalid_request", "{problem}");
}

fn here() {
    let atoll = Atoll::new();
    std::fs::create_dir(atoll.path("project")).unwrap();
    std::fs::write(atoll.path("project/in.txt"), "inside").unwrap();
    let at = |arguments: &[&str]| {
        Running::start(atoll.command(arguments).current_dir(atoll.path("project"))).finish()
    };

    let read = at(&["run", "--here", "-c", "print(open('in.txt').read())"]);
    let write = at(&["run", "--here", "-c", "open('out.txt', 'w').write('x')"]);
    let allowed = at(&["run", "--here=rw", "-c", "open('out.txt', 'w').write('x')"]);

    assert_eq!(read.text(), "inside\n", "{}", read.stderr);
    assert_eq!(write.code, 1, "{write:?}");
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert_eq!(std::fs::read(atoll.path("project/out.txt")).unwrap(), b"x");
}

fn variables() {
    let atoll = Atoll::new().with("CANARY_SECRET", "s3cret").with("ATOLL_API_KEY", "s3cret");

    let ended = atoll.run(&["run", "-e", "GIVEN=yes", "-l", "sh", "-c", "env"]);

    assert!(ended.text().contains("GIVEN=yes"), "{ended:?}");
    assert!(!ended.text().contains("s3cret"), "{ended:?}");
    assert!(!ended.text().contains("ATOLL_"), "{ended:?}");
}

fn interrupted() {
    let atoll = Atoll::new();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let line = "print('begun', flush=True)\nwhile True: pass";
        let mut running = Running::start(&mut atoll.command(&["run", "-c", line]));
        assert_eq!(running.line(), "begun");

        running.signal(signal);

        let ended = running.finish();
        assert_eq!((ended.code, ended.signal), (code, Some(signal.as_raw())));
        assert_eq!(atoll.sessions(), [""; 0]);
    }
}

fn killed() {
    let atoll = Atoll::new();
    let line = "print('begun', flush=True)\nwhile True: pass";
    let mut running = Running::start(&mut atoll.command(&["run", "-c", line]));
    assert_eq!(running.line(), "begun");
    running.signal(Signal::KILL);
    running.finish();
    let kept = atoll.session(&[]);

    let pruned = atoll.json(&["prune"]);

    assert_eq!(pruned.as_array().unwrap().len(), 1, "{pruned}");
    assert_eq!(atoll.sessions(), [kept]);
}

fn leaves_nothing() {
    let atoll = Atoll::new();

    atoll.run(&["run", "-c", "pass"]);
    atoll.run(&["run", "-c", "raise SystemExit(1)"]);
    atoll.run(&["run", "-l", "cobol", "-c", "x"]);

    assert_eq!(atoll.sessions(), [""; 0]);
}

fn not_isolating() {
    let atoll = Atoll::new();

    let ended = atoll.run(&["run", "--engine", "local", "-c", "print(1)"]);

    assert_eq!(ended.code, 125, "{ended:?}");
    assert_eq!(ended.text(), "");
    assert!(ended.stderr.starts_with("error: "), "{ended:?}");
    assert!(ended.stderr.contains("say --trusted"), "{ended:?}");
}
