//! The store's file: made whole, kept private, and refused when it is not what it should be.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use atoll_store::{ErrorKind, KeyRecord, Store};
use atoll_types::key::Scope;
use jiff::Timestamp;
use sqlx::{ConnectOptions as _, Connection as _, sqlite::SqliteConnectOptions};

fn key(name: &str) -> KeyRecord {
    KeyRecord {
        id: name.to_owned(),
        name: name.to_owned(),
        hash: vec![1],
        scopes: vec![Scope::Run],
        created: Timestamp::UNIX_EPOCH,
    }
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("atoll.db")
    }

    /// A store with enough in it to span many pages, closed.
    async fn filled() -> Self {
        let place = Self::new();
        let store = Store::open(&place.file()).await.unwrap();
        for number in 0..200 {
            let hash = vec![7; 400];
            store.insert_key(&KeyRecord { hash, ..key(&format!("k{number}")) }).await.unwrap();
        }
        store.close().await;
        place
    }
}

async fn refused(path: &Path) -> (ErrorKind, String) {
    let before = fs::read(path).unwrap();
    let error = Store::open(path).await.unwrap_err();
    assert_eq!(fs::read(path).unwrap(), before, "a refused file was changed");
    (error.kind(), error.to_string())
}

#[tokio::test]
async fn what_was_written_is_there_after_opening_again() {
    let place = Place::new();
    let store = Store::open(&place.file()).await.unwrap();
    store.insert_key(&key("a")).await.unwrap();
    store.close().await;

    let store = Store::open(&place.file()).await.unwrap();

    assert_eq!(store.keys().await.unwrap(), [key("a")]);
}

#[tokio::test]
async fn what_was_written_is_there_without_a_close() {
    let place = Place::new();
    let first = Store::open(&place.file()).await.unwrap();
    first.insert_key(&key("a")).await.unwrap();

    // As after a kill: a copy of the files as they are now.
    let copy = Place::new();
    for suffix in ["", "-wal"] {
        let name = format!("atoll.db{suffix}");
        fs::copy(place.0.path().join(&name), copy.0.path().join(&name)).unwrap();
    }
    let second = Store::open(&copy.file()).await.unwrap();

    assert_eq!(second.keys().await.unwrap(), [key("a")]);
}

#[tokio::test]
async fn every_file_is_its_owners_alone() {
    let place = Place::new();
    let store = Store::open(&place.file()).await.unwrap();
    store.insert_key(&key("a")).await.unwrap();

    let mut names = Vec::new();
    for entry in fs::read_dir(place.0.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        names.push(name);
    }

    names.sort();
    assert_eq!(names, ["atoll.db", "atoll.db-shm", "atoll.db-wal"]);
}

#[tokio::test]
async fn a_file_that_others_could_read_is_made_private() {
    let place = Place::filled().await;
    fs::set_permissions(place.file(), fs::Permissions::from_mode(0o644)).unwrap();

    Store::open(&place.file()).await.unwrap();

    assert_eq!(fs::metadata(place.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn an_empty_file_is_refused_not_taken_for_a_new_one() {
    let place = Place::new();
    fs::write(place.file(), "").unwrap();

    let (kind, message) = refused(&place.file()).await;

    assert_eq!(kind, ErrorKind::Damaged);
    assert!(message.contains("atoll.db") && message.contains("empty"), "{message}");
}

#[tokio::test]
async fn a_file_cut_short_is_refused() {
    let place = Place::filled().await;
    let content = fs::read(place.file()).unwrap();
    assert!(content.len() > 40_000, "{}", content.len());

    for length in [1, 50, 100, 4096, 5000, content.len() / 2, content.len() - 4096] {
        fs::write(place.file(), &content[..length]).unwrap();
        let (kind, message) = refused(&place.file()).await;
        assert_eq!(kind, ErrorKind::Damaged, "cut to {length}: {message}");
    }
}

#[tokio::test]
async fn a_file_with_damage_in_the_middle_is_refused() {
    let place = Place::filled().await;
    let mut content = fs::read(place.file()).unwrap();
    let middle = content.len() / 2;
    content[middle..middle + 8192].fill(0xa5);
    fs::write(place.file(), &content).unwrap();

    assert_eq!(refused(&place.file()).await.0, ErrorKind::Damaged);
}

#[tokio::test]
async fn a_file_of_something_else_is_refused() {
    let place = Place::new();
    fs::write(place.file(), "a letter to a friend\n".repeat(400)).unwrap();
    assert_eq!(refused(&place.file()).await.0, ErrorKind::Damaged);
    fs::remove_file(place.file()).unwrap();
    sql(&place.file(), "create table letters (text text)").await;

    let (kind, message) = refused(&place.file()).await;

    assert_eq!(kind, ErrorKind::Damaged);
    assert!(message.contains("not a store of Atoll's"), "{message}");
}

#[tokio::test]
async fn a_file_of_a_newer_atoll_is_refused() {
    let place = Place::filled().await;
    sql(&place.file(), "pragma user_version = 1000").await;

    let (kind, message) = refused(&place.file()).await;

    assert_eq!(kind, ErrorKind::Newer);
    assert!(message.contains("1000"), "{message}");
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_not_made() {
    let place = Place::new();

    let error = Store::open(&place.0.path().join("no/atoll.db")).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn many_may_open_a_new_store_at_once() {
    let place = Place::new();
    let path = place.file();

    let opens = (0..8).map(|number| {
        let path = path.clone();
        tokio::spawn(async move {
            let store = Store::open(&path).await.unwrap();
            store.insert_key(&key(&format!("k{number}"))).await.unwrap();
            store.close().await;
        })
    });
    for open in opens.collect::<Vec<_>>() {
        open.await.unwrap();
    }

    let store = Store::open(&path).await.unwrap();
    assert_eq!(store.keys().await.unwrap().len(), 8);
}

const CHILD: &str = "ATOLL_STORE_TEST_FILE";

#[tokio::test]
async fn two_processes_write_to_one_file() {
    let place = Place::new();
    let store = Store::open(&place.file()).await.unwrap();
    let mut other = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_other_process", "--ignored"])
        .env(CHILD, place.file())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();

    for number in 0..100 {
        store.insert_key(&key(&format!("one-{number}"))).await.unwrap();
    }

    assert!(other.wait().await.unwrap().success());
    assert_eq!(store.keys().await.unwrap().len(), 200);
}

#[tokio::test]
#[ignore = "part of two_processes_write_to_one_file"]
#[expect(clippy::disallowed_methods, reason = "how the other process is told its file")]
async fn the_other_process() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = Store::open(Path::new(&path)).await.unwrap();
    for number in 0..100 {
        store.insert_key(&key(&format!("two-{number}"))).await.unwrap();
    }
}

async fn sql(path: &Path, statement: &'static str) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
