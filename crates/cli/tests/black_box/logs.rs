//! `atoll logs`, `atoll ps` and `atoll exec -d`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde_json::Value;

use crate::{
    Case,
    atoll::{Atoll, PATIENCE, Running, until},
};

pub(crate) const CASES: &[Case] = &[
    ("a_detached_command_is_listed_and_its_output_shown", detached),
    ("following_survives_the_server_with_no_byte_lost_or_twice", restart),
    ("logs_begin_where_they_are_asked_to", offsets),
    ("logs_of_a_running_process_end_where_they_are", running),
    ("logs_are_lines_of_json_if_asked_for", json),
    ("logs_end_when_nobody_reads_them", unread),
    ("logs_of_what_is_not_there_are_refused", refused),
];

/// Starts a line of shell that goes on by itself.
fn start(atoll: &Atoll, session: &str, line: &str) -> String {
    atoll.ok(&["exec", "-d", session, "--", "sh", "-c", line]).trim().to_owned()
}

fn ended(atoll: &Atoll, session: &str, process: &str) -> bool {
    let listed = atoll.json(&["ps", session]);
    let mut processes = listed.as_array().unwrap().iter();
    processes.any(|one| one["id"].as_u64() == process.parse().ok() && !one["end"].is_null())
}

fn detached() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);

    let process = start(&atoll, &session, "echo out; echo err >&2; exit 3");
    let followed = atoll.run(&["logs", "-f", &session, &process]);
    let shown = atoll.run(&["logs", &session]);
    let listed = atoll.json(&["ps", &session]);
    let table = atoll.ok(&["--table", "ps", &session]);

    assert_eq!((followed.code, followed.text().as_str()), (3, "out\n"));
    assert_eq!((shown.code, shown.text().as_str(), shown.stderr.as_str()), (0, "out\n", "err\n"));
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["id"].to_string(), process);
    assert_eq!(listed[0]["written"], serde_json::json!({ "stdout": 4, "stderr": 4 }));
    assert!(table.contains("exited 3"), "{table}");
}

/// A program that counts, waits in the middle until it may go on, and ends with 7.
fn counter(last: u32) -> String {
    let half = last / 2;
    format!("seq 1 {half}; until [ -e go ]; do sleep 0.05; done; seq {} {last}; exit 7", half + 1)
}

/// Kills the private server, and returns when nothing is left of it.
fn kill_server(atoll: &Atoll) {
    let status = atoll.json(&["daemon", "status"]);
    let pid = i32::try_from(status["pid"].as_i64().unwrap()).unwrap();
    let server = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    pidfd_send_signal(&server, Signal::KILL).unwrap();
    let patience = Timespec::try_from(PATIENCE).unwrap();
    let gone = poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&patience)).unwrap();
    assert_eq!(gone, 1, "the server does not die");
}

fn restart() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    // Far more than pipes and sockets hold: each server dies in the middle of it.
    let last = 600_000;
    start(&atoll, &session, &counter(last));
    let mut logs = Running::start(&mut atoll.command(&["logs", "-f", &session]));
    let mut seen = Vec::new();

    for round in 1..=3 {
        while seen.len() < round * 45_000 {
            seen.push(logs.line());
        }
        kill_server(&atoll);
        // Whoever comes next starts another; the output goes on where it was.
        assert_eq!(atoll.sessions(), [session.as_str()]);
    }
    atoll.ok(&["exec", &session, "--", "touch", "go"]);
    let rest = logs.finish();

    seen.extend(rest.text().lines().map(str::to_owned));
    assert_eq!(rest.code, 7, "{}", rest.stderr);
    assert!(rest.stderr.contains("attaching again"), "{}", rest.stderr);
    let expected: Vec<String> = (1..=last).map(|number| number.to_string()).collect();
    let wrong = seen.iter().zip(&expected).position(|(seen, expected)| seen != expected);
    assert_eq!((seen.len(), wrong), (expected.len(), None));
}

fn offsets() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let process = start(&atoll, &session, "printf '1\\n2\\n3\\n'; printf 'a\\nb' >&2");
    until("it has ended", || ended(&atoll, &session, &process));

    for (from, stdout, stderr) in
        [("0", "1\n2\n3\n", "a\nb"), ("2", "2\n3\n", "a\nb"), ("5:2", "\n", "b"), ("6:3", "", "")]
    {
        let shown = atoll.run(&["logs", &session, &process, "--since-offset", from]);
        assert_eq!((shown.text().as_str(), shown.stderr.as_str()), (stdout, stderr), "{from}");
    }
    for (tail, stdout, stderr) in [("2", "2\n3\n", "a\nb"), ("1", "3\n", "b"), ("0", "", "")] {
        let shown = atoll.run(&["logs", &session, &process, "--tail", tail]);
        assert_eq!((shown.text().as_str(), shown.stderr.as_str()), (stdout, stderr), "{tail}");
    }
}

fn running() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let process =
        start(&atoll, &session, "echo first; until [ -e go ]; do sleep 0.05; done; echo last");
    until("it has written", || {
        atoll.json(&["ps", &session])[0]["written"]["stdout"].as_u64() == Some(6)
    });

    let shown = atoll.run(&["logs", &session, &process]);
    let mut logs = Running::start(&mut atoll.command(&["logs", "-f", "--tail", "1", &session]));
    let first = logs.line();
    atoll.ok(&["exec", &session, "--", "touch", "go"]);
    let rest = logs.finish();

    assert_eq!((shown.code, shown.text().as_str()), (0, "first\n"));
    assert_eq!((first.as_str(), rest.text().as_str(), rest.code), ("first", "last\n", 0));
}

fn json() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    start(&atoll, &session, "printf 'a\\n\\377'; exit 1");

    let shown = atoll.run(&["logs", "-f", "--json", &session]);

    assert_eq!(shown.code, 1, "{shown:?}");
    let lines: Vec<Value> =
        shown.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (end, output) = lines.split_last().unwrap();
    let data: Vec<u8> = output
        .iter()
        .flat_map(|line| STANDARD.decode(line["data"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(data, b"a\n\xff");
    assert_eq!((&output[0]["stream"], &output[0]["offset"]), (&"stdout".into(), &0.into()));
    assert_eq!((&end["type"], &end["end"]["exit_code"]), (&"end".into(), &1.into()));
}

fn unread() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    start(&atoll, &session, "yes");

    let mut logs = atoll.command(&["logs", "-f", &session]);
    let mut logs = Running::start(logs.stderr(std::process::Stdio::null()));
    assert_eq!(logs.line(), "y");
    let stdout = logs.child().stdout.take();
    drop(stdout);

    let mut status = None;
    until("it has ended", || {
        status = logs.child().try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(141));
}

fn refused() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);

    let none = atoll.run(&["logs", &session]);
    let process = atoll.run(&["logs", &session, "99"]);
    let missing = atoll.run(&["logs", "-f", "no-such-session", "1"]);

    assert_eq!((none.code, process.code, missing.code), (125, 125, 125));
    assert!(none.stderr.contains("no processes"), "{none:?}");
}
