//! The private server.

use std::{
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    process::Stdio,
};

use crate::{
    Case,
    atoll::{Atoll, Running, until},
};

pub(crate) const CASES: &[Case] = &[
    ("a_server_is_started_when_needed_and_stopped_when_told", starts_and_stops),
    ("commands_at_one_time_start_one_server", one_server),
    ("sessions_go_on_under_the_next_server", adopted),
    ("a_settings_file_holds_for_the_private_server", settings_file),
    ("settings_a_running_server_does_not_have_are_noted", other_settings),
    ("stopping_ends_the_sessions", ends_sessions),
    ("an_idle_server_ends_by_itself", idle),
    ("the_socket_is_its_owners_alone", socket),
    ("the_server_has_none_of_the_shells_variables_or_files", clean),
];

fn pid(atoll: &Atoll) -> u64 {
    atoll.json(&["daemon", "status"])["pid"].as_u64().unwrap()
}

fn runs(atoll: &Atoll) -> bool {
    atoll.run(&["daemon", "status"]).code == 0
}

fn starts_and_stops() {
    let atoll = Atoll::new();

    assert!(!runs(&atoll));
    atoll.ok(&["engines"]);
    assert!(runs(&atoll));
    let status = atoll.json(&["daemon", "status"]);
    for file in ["socket", "log"] {
        assert!(std::fs::exists(status[file].as_str().unwrap()).unwrap(), "{status}");
    }
    atoll.ok(&["daemon", "stop"]);
    assert!(!runs(&atoll));
    atoll.ok(&["daemon", "stop"]);
}

fn one_server() {
    let atoll = Atoll::new();

    let commands: Vec<_> =
        (0..6).map(|_| Running::start(&mut atoll.command(&["key", "ls"]))).collect();
    for command in commands {
        let ended = command.finish();
        assert_eq!(ended.code, 0, "{ended:?}");
    }

    let data = atoll.path(".local/share/atoll");
    let pid = pid(&atoll).to_string();
    let servers = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let ours = line.contains("daemon\0run") && line.contains(data.to_str().unwrap());
        ours.then(|| entry.file_name().into_string().unwrap())
    });
    assert_eq!(servers.collect::<Vec<_>>(), [pid]);
}

fn adopted() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    atoll.ok(&["exec", &session, "--", "sh", "-c", "echo before > note"]);
    let before = pid(&atoll);

    atoll.ok(&["daemon", "stop", "--keep"]);
    assert_eq!(atoll.sessions(), [session.as_str()]);

    assert_eq!(atoll.ok(&["exec", &session, "--", "cat", "note"]), "before\n");
    assert_ne!(pid(&atoll), before);
}

fn settings_file() {
    let atoll = Atoll::new().with("ATOLL_CONFIG", "mine.toml");
    std::fs::write(atoll.path("mine.toml"), "[limits]\nmemory = '100m'").unwrap();

    let session = atoll.json(&["session", "create"]);
    let listed = atoll.run(&["session", "ls"]);

    assert_eq!(session["limits"]["memory"], 100 << 20, "{session}");
    assert_eq!((listed.code, listed.stderr.as_str()), (0, ""));
}

fn other_settings() {
    let atoll = Atoll::new();
    atoll.ok(&["engines"]);
    let with = |memory: &str| {
        Running::start(atoll.command(&["engines"]).env("ATOLL_MEMORY", memory)).finish()
    };

    let (same, other) = (with("512m"), with("100m"));

    assert_eq!((same.code, same.stderr.as_str()), (0, ""));
    assert_eq!(other.code, 0, "{other:?}");
    assert!(other.stderr.contains("other settings"), "{other:?}");
}

fn ends_sessions() {
    let atoll = Atoll::new();
    atoll.session(&[]);

    atoll.ok(&["daemon", "stop"]);
    atoll.ok(&["engines"]);

    assert_eq!(atoll.sessions(), [""; 0]);
}

fn idle() {
    let atoll = Atoll::new().with("ATOLL_IDLE_EXIT", "1s");

    atoll.ok(&["engines"]);

    until("the server has ended", || !runs(&atoll));
    let log = std::fs::read_to_string(atoll.path(".local/share/atoll/daemon.log")).unwrap();
    assert_eq!(log, "", "an idle server is silent");
}

fn socket() {
    let atoll = Atoll::new();

    atoll.ok(&["engines"]);

    let about = std::fs::metadata(atoll.path(".local/share/atoll/daemon.sock")).unwrap();
    assert!(about.file_type().is_socket());
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    let data = std::fs::metadata(atoll.path(".local/share/atoll")).unwrap();
    assert_eq!(data.permissions().mode() & 0o777, 0o700);
}

fn clean() {
    let atoll = Atoll::new().with("CANARY_SECRET", "s3cret").with("ATOLL_API_KEY", "s3cret");
    // What is open at 9 in the shell is open at 9 in its commands.
    let script = format!("exec 9>open.txt; exec {} engines", env!("CARGO_BIN_EXE_atoll"));

    let like = atoll.command(&[]);
    let mut command = std::process::Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(script)
        .current_dir(atoll.path(""))
        .env_clear()
        .envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = Running::start(&mut command).finish();

    assert_eq!(ended.code, 0, "{ended:?}");
    let process = format!("/proc/{}", pid(&atoll));
    let variables = std::fs::read(format!("{process}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&variables).contains("s3cret"));
    for entry in std::fs::read_dir(format!("{process}/fd")).unwrap() {
        let target = std::fs::read_link(entry.unwrap().path()).unwrap_or_default();
        assert!(!target.ends_with("open.txt"), "{}", target.display());
    }
}
