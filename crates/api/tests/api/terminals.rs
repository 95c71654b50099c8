//! Terminals over a WebSocket.

use atoll_client::{Client, Opening, Shown, Terminal, TerminalInput, TerminalOutput};
use atoll_types::{
    execution::CommandLine,
    id::{ProcessId, SessionId},
    key::Scope,
    process::{ProcessEnd, StartProcess, TerminalSize},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    sockets::tcp,
    world::{PATIENCE, World},
};

const SIZE: TerminalSize = TerminalSize { rows: 31, columns: 97 };

/// A terminal, and what it has shown so far.
struct Seen {
    process: ProcessId,
    output: TerminalOutput,
    input: TerminalInput,
    text: String,
}

impl Seen {
    fn new(terminal: Terminal) -> Self {
        let process = terminal.process.id;
        let (output, input) = terminal.split();
        Self { process, output, input, text: String::new() }
    }

    async fn step(&mut self) -> Option<ProcessEnd> {
        let shown = tokio::time::timeout(PATIENCE, self.output.next()).await.expect("something");
        let shown = match shown.unwrap().expect("it goes on") {
            Shown::Bytes(data) => String::from_utf8_lossy(&data).into_owned(),
            Shown::Refused(refused) => format!("<{}: {}>", refused.code, refused.message),
            Shown::Skipped(offset) => format!("<to {offset}>"),
            Shown::Ended(end) => return Some(end),
        };
        self.text.push_str(&shown);
        None
    }

    async fn until(&mut self, what: &str) {
        while !self.text.contains(what) {
            assert_eq!(self.step().await, None, "it ended without {what:?}: {:?}", self.text);
        }
    }

    async fn end(&mut self) -> ProcessEnd {
        loop {
            if let Some(end) = self.step().await {
                return end;
            }
        }
    }
}

/// Starts a line of shell with a terminal, and looks at it.
async fn start(client: &Client, id: &SessionId, line: &str) -> Seen {
    let command = Some(CommandLine::Shell(line.to_owned()));
    let request = StartProcess { command, terminal: Some(SIZE), ..Default::default() };
    let process = client.start_process(id, &request).await.unwrap();
    assert_eq!(process.terminal, Some(SIZE));
    back(client, id, process.id).await
}

async fn back(client: &Client, id: &SessionId, process: ProcessId) -> Seen {
    let opening = Opening { process: Some(process), ..Default::default() };
    Seen::new(client.terminal(id, opening).await.unwrap())
}

/// Whatever a client can do with terminals, over any kind of connection.
pub(crate) async fn tour(client: &Client, id: &SessionId) {
    let opening = Opening { size: Some(SIZE), ..Default::default() };
    let mut shell = Seen::new(client.terminal(id, opening).await.unwrap());
    shell.input.write("stty -echo; stty size; echo up\n").await.unwrap();
    shell.until("31 97\r\nup\r\n").await;
    shell.input.resize(TerminalSize { rows: 20, columns: 60 }).await.unwrap();
    shell.input.write("stty size; exit 5\n").await.unwrap();
    shell.until("20 60").await;
    assert_eq!(shell.end().await.exit_code, Some(5));
    assert_eq!(shell.output.next().await.unwrap(), None);

    let listed = client.process(id, shell.process).await.unwrap();
    assert_eq!(listed.terminal, Some(TerminalSize { rows: 20, columns: 60 }));
}

async fn world(test: impl AsyncFnOnce(&World, &Client, SessionId)) {
    World::run(async |world| {
        let (port, _server) = tcp(world, None).await;
        let key = world.key(&[Scope::Read, Scope::Run]).await;
        let url = format!("http://127.0.0.1:{port}");
        let client = Client::tcp(&url, &key, &atoll_client::Trust::System).unwrap();
        let id = world.session().await.parse().unwrap();
        test(world, &client, id).await;
    })
    .await;
}

#[tokio::test]
async fn whoever_leaves_can_come_back() {
    world(async |_, client, id| {
        let line = "echo one; read a; echo two; read b; exit 3";
        let mut first = start(client, &id, line).await;
        first.until("one\r\n").await;
        let process = first.process;
        drop(first);

        let mut second = back(client, &id, process).await;
        second.until("one\r\n").await;
        second.input.write("a\n").await.unwrap();
        second.until("two\r\n").await;
        let mut third = back(client, &id, process).await;
        third.until("one\r\na\r\ntwo\r\n").await;
        third.input.write("b\n").await.unwrap();

        assert_eq!(second.end().await.exit_code, Some(3));
        assert_eq!(third.end().await.exit_code, Some(3));
        assert_eq!(second.text, third.text);
        let mut late = back(client, &id, process).await;
        assert_eq!(late.end().await.exit_code, Some(3));
        assert_eq!(late.text, third.text);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_done_is_told_and_the_terminal_goes_on() {
    world(async |_, client, id| {
        let mut seen = start(client, &id, "stty -echo; echo up; read a; stty size").await;
        seen.until("up").await;

        seen.input.resize(TerminalSize { rows: 0, columns: 0 }).await.unwrap();
        seen.until("<invalid_request: ").await;
        seen.input.write("\n").await.unwrap();

        assert_eq!(seen.end().await.exit_code, Some(0));
        assert!(seen.text.ends_with("31 97\r\n"), "{:?}", seen.text);
    })
    .await;
}

#[tokio::test]
async fn what_is_no_longer_kept_is_skipped_and_told() {
    world(async |_, client, id| {
        let line = "stty -opost -echo; head -c 3000000 /dev/zero; printf end";
        let command = Some(CommandLine::Shell(line.to_owned()));
        let request = StartProcess { command, terminal: Some(SIZE), ..Default::default() };
        let process = client.start_process(&id, &request).await.unwrap().id;
        // Nobody reads until all of it was written.
        let begin = std::time::Instant::now();
        while client.process(&id, process).await.unwrap().end.is_none() {
            assert!(begin.elapsed() < PATIENCE, "it never ends");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }

        let mut seen = back(client, &id, process).await;
        seen.end().await;

        let (skipped, rest) = seen.text.split_once('>').unwrap();
        let offset: usize = skipped.strip_prefix("<to ").unwrap().parse().unwrap();
        assert_eq!(offset + rest.len(), 3_000_003);
        assert!(rest.ends_with("end"));
    })
    .await;
}

#[tokio::test]
async fn a_terminal_ends_with_its_session() {
    world(async |_, client, id| {
        let mut seen = start(client, &id, "echo up; sleep 1000").await;
        seen.until("up").await;

        client.delete_session(&id, None).await.unwrap();

        assert_eq!(seen.end().await.reason, atoll_types::execution::Reason::Lost);
    })
    .await;
}

/// The head of the answer to a wish for a WebSocket.
async fn answer(port: u16, target: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(PATIENCE, stream.read_u8()).await.expect("an answer");
        head.push(byte.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn nobody_gets_a_terminal_without_the_right_to_it() {
    World::run(async |world| {
        let (port, _server) = tcp(world, None).await;
        let id = world.session().await;
        let target = format!("/api/sessions/{id}/terminal");
        let key = async |scope| format!("X-API-Key: {}\r\n", world.key(&[scope]).await);
        let (run, read) = (key(Scope::Run).await, key(Scope::Read).await);

        for (headers, status) in [
            (run.clone(), "101"),
            (String::new(), "401"),
            ("X-API-Key: wrong\r\n".to_owned(), "401"),
            (read, "403"),
            (format!("{run}Origin: http://evil.example\r\n"), "403"),
            (format!("{run}Origin: null\r\n"), "403"),
            (format!("{run}Sec-Fetch-Site: cross-site\r\n"), "403"),
            (format!("{run}Origin: http://127.0.0.1:{port}\r\n"), "101"),
        ] {
            let head = answer(port, &target, &headers).await;
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}: {head}");
        }
        let none = answer(port, "/api/sessions/none/terminal", &run).await;
        assert!(none.starts_with("HTTP/1.1 404 "), "{none}");
    })
    .await;
}

#[tokio::test]
async fn what_is_no_terminal_is_refused() {
    World::run(async |world| {
        let (port, _server) = tcp(world, None).await;
        let id = world.session().await;
        let key = format!("X-API-Key: {}\r\n", world.key(&[Scope::Run]).await);
        let plain = json!({ "command": "sleep 1000" });
        let started = world.post(&format!("/api/sessions/{id}/processes"), plain).await.json();
        let plain = started["id"].as_u64().unwrap();

        for (query, status) in [
            (format!("?process={plain}"), "400"),
            ("?process=999".to_owned(), "404"),
            ("?rows=0&columns=0".to_owned(), "400"),
            ("?rows=65535&columns=65535".to_owned(), "400"),
            ("?rows=24".to_owned(), "400"),
            ("?colour=red".to_owned(), "400"),
        ] {
            let head = answer(port, &format!("/api/sessions/{id}/terminal{query}"), &key).await;
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{query}: {head}");
        }
        let reply = world.get(&format!("/api/sessions/{id}/terminal")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "invalid_request"));
        let count = world.get(&format!("/api/sessions/{id}/processes")).await.json();
        assert_eq!(count["processes"].as_array().unwrap().len(), 1, "none of them started a shell");
    })
    .await;
}
