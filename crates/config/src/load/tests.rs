use std::time::Duration;

use insta::assert_snapshot;

use super::*;

/// A settings file with this text.
fn file(text: &str) -> (tempfile::TempDir, Flags) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    fs::write(&path, text).unwrap();
    (directory, Flags { file: Some(path), ..Flags::default() })
}

fn nowhere() -> Surroundings {
    [("HOME", "/nowhere")].into_iter().collect()
}

/// The error and its hint, without the directory of the file.
fn refused(text: &str) -> String {
    let (directory, flags) = file(text);
    let error = load(&flags, &nowhere()).unwrap_err();
    let shown = format!("{error}\nhint: {}", error.advice().unwrap_or("none"));
    shown.replace(directory.path().to_str().unwrap(), "DIR")
}

#[test]
fn the_defaults_are_usable_alone() {
    let loaded = load(&Flags::default(), &nowhere()).unwrap();

    assert_eq!(loaded.settings.data_dir, Path::new("/nowhere/.local/share/atoll"));
    assert_eq!(loaded.settings.server.listen, "127.0.0.1:8000".parse().unwrap());
    assert!(loaded.settings.mounts.allow.is_empty());
    assert!(!loaded.settings.engines.trust_local);
    assert!(loaded.file.is_none());
}

#[test]
fn a_file_beats_the_defaults_the_environment_the_file_and_a_flag_all() {
    let (_directory, mut flags) = file("log = 'info'\n[sessions]\nidle = '1m'\ntimeout = '2m'");
    let here = [("ATOLL_SESSION_IDLE", "3m"), ("ATOLL_LOG", "debug")].into_iter().collect();
    flags.set("log", Some("trace"));

    let loaded = load(&flags, &here).unwrap();

    let Settings { log, sessions, .. } = loaded.settings;
    assert_eq!(log, "trace");
    assert_eq!(sessions.idle, Duration::from_mins(3));
    assert_eq!(sessions.timeout, Duration::from_mins(2));
    assert_eq!(sessions.max_timeout, Duration::from_hours(24));
    let origin = |key: &str| loaded.origins[key].1;
    assert_eq!(origin("log"), Origin::Flag);
    assert_eq!(origin("sessions.idle"), Origin::Environment("ATOLL_SESSION_IDLE"));
    assert_eq!(origin("sessions.timeout"), Origin::File);
    assert_eq!(origin("sessions.max_timeout"), Origin::Default);
}

#[test]
fn a_misspelled_key_is_an_error() {
    assert_snapshot!(refused("[server]\nlisen = '127.0.0.1:1'"), @"
    DIR/config.toml: there is no setting `server.lisen`
    hint: did you mean `server.listen`?
    ");
}

#[test]
fn a_key_that_resembles_none_is_an_error() {
    assert_snapshot!(refused("colour = true"), @"
    DIR/config.toml: there is no setting `colour`
    hint: `atoll config default` shows every setting
    ");
}

#[test]
fn a_value_of_the_wrong_type_is_an_error() {
    assert_snapshot!(refused("[limits]\npids = 'many'"), @r#"
    invalid type: string "many", expected u32
    hint: in the setting `limits.pids`
    "#);
}

#[test]
fn what_is_no_toml_is_an_error_with_its_line() {
    assert!(refused("log = \n").contains("line 1"));
}

#[test]
fn a_default_above_its_maximum_is_an_error() {
    assert_snapshot!(refused("[limits]\nmemory = '9g'"), @"
    limits.memory is more than limits.max.memory
    hint: none
    ");
}

#[test]
fn half_of_tls_is_an_error() {
    assert_snapshot!(refused("[server]\ntls_cert = '/c.pem'"), @"
    TLS needs both a certificate and its key
    hint: set server.tls_cert and server.tls_key, or neither
    ");
}

#[test]
fn a_relative_directory_is_an_error() {
    assert_snapshot!(refused("data_dir = 'here'"), @"
    data_dir: `here` is not an absolute path
    hint: none
    ");
}

#[test]
fn an_allowed_mount_is_writable_unless_it_says_ro() {
    let (_directory, flags) = file("[mounts]\nallow = ['/a', '/b:ro']");

    let allow = load(&flags, &nowhere()).unwrap().settings.mounts.allow;

    let shown: Vec<_> =
        allow.iter().map(|mount| (mount.path.to_str().unwrap(), mount.writable)).collect();
    assert_eq!(shown, [("/a", true), ("/b", false)]);
}

#[test]
fn a_named_file_that_is_not_there_is_an_error() {
    let flags = Flags { file: Some("/nowhere/atoll.toml".into()), ..Flags::default() };

    let error = load(&flags, &nowhere()).unwrap_err().to_string();

    assert!(error.starts_with("cannot read the settings /nowhere/atoll.toml"), "{error}");
}

#[test]
fn a_wrong_variable_is_named() {
    let here = [("ATOLL_PIDS", "lots")].into_iter().collect();

    let error = load(&Flags::default(), &here).unwrap_err();

    assert_eq!(error.to_string(), "ATOLL_PIDS: `lots` is not a whole number");
}

#[test]
fn an_empty_variable_says_nothing() {
    let here = [("ATOLL_PIDS", "")].into_iter().collect();

    assert_eq!(load(&Flags::default(), &here).unwrap().settings.limits.default.pids, Some(128));
}

#[test]
fn the_key_comes_from_a_variable_or_a_file_and_is_never_shown() {
    let (directory, mut flags) = file("[client]\nserver = 'http://127.0.0.1:1'");
    let path = directory.path().join("key");
    fs::write(&path, "from-file\n").unwrap();
    flags.set("client.api_key_file", path.to_str());

    let read = load(&flags, &nowhere()).unwrap();
    let given = load(&flags, &[("ATOLL_API_KEY", "given")].into_iter().collect()).unwrap();

    assert_eq!(read.settings.client.api_key, Some(Secret::new("from-file")));
    assert_eq!(given.settings.client.api_key, Some(Secret::new("given")));
    assert!(!format!("{read:?}{given:?}").contains("from-file"));
}
