//! `atoll serve` and `atoll key`.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    Case,
    atoll::{Atoll, Running},
};

pub(crate) const CASES: &[Case] = &[
    ("a_server_is_reached_over_the_network_with_a_key_only", with_key),
    ("a_server_takes_over_from_a_private_one", takes_over),
    ("a_server_says_where_it_is_in_one_line_of_json_if_asked", says_json),
    ("a_second_server_of_a_data_directory_is_refused", second),
    ("a_key_is_shown_once_and_can_be_removed", keys),
    ("an_address_beyond_loopback_needs_tls", beyond_loopback),
    ("a_port_in_use_is_said", in_use),
    ("tls_is_served_and_believed_only_from_known_authorities", tls),
];

/// A server on a free port, and its address.
pub(crate) fn serve(atoll: &Atoll, flags: &[&str]) -> (Running, String) {
    let mut command = atoll.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.args(flags);
    let mut running = Running::start(command.stderr(Stdio::piped()));
    let line = running.line();
    let url = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
    (running, url)
}

fn tls() {
    let atoll = Atoll::new();
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    std::fs::write(atoll.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(atoll.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let flags = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let (server, url) = serve(&atoll, &flags);
    let key = atoll.json(&["key", "create", "test"]);
    let key = key["key"].as_str().unwrap();
    let trusting = Atoll::new()
        .with("ATOLL_API_KEY", key)
        .with("ATOLL_CA_FILE", atoll.path("cert.pem").to_str().unwrap());
    let wary = Atoll::new().with("ATOLL_API_KEY", key);

    let believed = trusting.run(&["--server", &url, "session", "ls"]);
    let doubted = wary.run(&["--server", &url, "session", "ls"]);

    assert!(url.starts_with("https://"), "{url}");
    assert_eq!(believed.text(), "[]\n", "{}", believed.stderr);
    assert_eq!((doubted.code, doubted.text().as_str()), (125, ""));
    stop(server);
}

pub(crate) fn stop(mut server: Running) {
    server.signal(Signal::TERM);
    let ended = server.finish();
    assert_eq!(ended.code, 0, "{ended:?}");
}

fn with_key() {
    let atoll = Atoll::new();
    let (server, url) = serve(&atoll, &[]);
    let key = atoll.json(&["key", "create", "test"]);
    let key = key["key"].as_str().unwrap();
    let (mine, stranger) =
        (Atoll::new().with("ATOLL_API_KEY", key), Atoll::new().with("ATOLL_API_KEY", "wrong"));

    let let_in = mine.run(&["--server", &url, "run", "-c", "print('from afar')"]);
    let wrong = stranger.run(&["--server", &url, "run", "-c", "print(1)"]);
    let none = Atoll::new().run(&["--server", &url, "session", "ls"]);

    assert_eq!(let_in.text(), "from afar\n", "{}", let_in.stderr);
    assert_eq!((wrong.code, wrong.text().as_str()), (125, ""));
    assert_eq!(none.code, 125);
    assert!(none.stderr.contains("API key"), "{none:?}");
    stop(server);
}

fn takes_over() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);

    let (server, _url) = serve(&atoll, &[]);

    assert_eq!(atoll.json(&["daemon", "status"])["mode"], "serve");
    assert_eq!(atoll.ok(&["exec", &session, "--", "echo", "still"]), "still\n");
    atoll.ok(&["session", "rm", &session]);
    stop(server);
}

fn says_json() {
    let atoll = Atoll::new();
    let mut server =
        Running::start(&mut atoll.command(&["serve", "--listen", "127.0.0.1:0", "--json"]));

    let said: Value = serde_json::from_str(&server.line()).unwrap();

    assert!(said["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{said}");
    stop(server);
}

fn second() {
    let atoll = Atoll::new();
    let (server, _url) = serve(&atoll, &[]);

    let ended = atoll.run(&["serve", "--listen", "127.0.0.1:0"]);

    assert_eq!(ended.code, 125);
    assert!(ended.stderr.contains("another server"), "{ended:?}");
    stop(server);
}

fn keys() {
    let atoll = Atoll::new();
    let made = atoll.json(&["key", "create", "laptop", "--scope", "read"]);
    let secret = made["key"].as_str().unwrap();

    let listed = atoll.ok(&["key", "ls"]);
    assert!(listed.contains("laptop") && !listed.contains(secret), "{listed}");
    atoll.ok(&["key", "rm", made["id"].as_str().unwrap()]);

    assert_eq!(atoll.json(&["key", "ls"]), Value::Array(vec![]));
}

fn beyond_loopback() {
    let atoll = Atoll::new();

    let ended = atoll.run(&["serve", "--listen", "0.0.0.0:0"]);

    assert_eq!(ended.code, 125);
    assert!(ended.stderr.contains("--tls-cert"), "{ended:?}");
}

fn in_use() {
    let atoll = Atoll::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    let ended = atoll.run(&["serve", "--listen", &address]);

    assert_eq!(ended.code, 125);
    assert!(ended.stderr.contains("--listen"), "{ended:?}");
}
