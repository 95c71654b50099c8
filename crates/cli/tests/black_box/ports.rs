//! Programs that listen in a sandbox, reached from outside.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
};

use rustix::process::Signal;

use crate::{
    Case,
    atoll::{Atoll, PATIENCE, Running, until},
    serve::{serve, stop},
};

pub(crate) const CASES: &[Case] = &[
    ("a_port_is_forwarded_until_interrupted", forwarded),
    ("forwarding_ends_with_the_session", ends_with_session),
    ("a_port_that_cannot_be_listened_on_is_said", taken),
    ("a_port_is_forwarded_over_tls", over_tls),
    ("a_program_is_asked_over_http", over_http),
    ("a_program_never_sees_the_key", no_key),
    ("a_program_is_asked_over_a_websocket", over_websocket),
    ("a_closed_port_is_a_typed_error", closed),
];

/// Answers with the head it was sent.
const MIRROR: &str = "
import http.server
class Mirror(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (self.requestline + '\\n' + str(self.headers)).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Set-Cookie', 'a=1; Path=/; Domain=localhost')
        self.send_header('Clear-Site-Data', '*')
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8000), Mirror).serve_forever()
";

/// A server in a session: a command that runs, and is killed when dropped.
fn python(atoll: &Atoll, session: &str, code: &str) -> Running {
    let running =
        Running::start(&mut atoll.command(&["exec", session, "--", "python3", "-c", code]));
    until("the program listens", || {
        let line = "test -n \"$(awk '$4 == \"0A\"' /proc/net/tcp)\"";
        atoll.run(&["exec", session, "--", "sh", "-c", line]).code == 0
    });
    running
}

fn files(atoll: &Atoll, session: &str) -> Running {
    atoll.ok(&["exec", session, "--", "sh", "-c", "echo from inside > index.html"]);
    let code = "import runpy, sys; sys.argv = ['x', '8000']; \
        runpy.run_module('http.server', run_name='__main__')";
    python(atoll, session, code)
}

/// Starts forwarding `port` and gives the address here.
fn forward(atoll: &Atoll, more: &[&str], session: &str, port: u16) -> (Running, String) {
    let port = format!("0:{port}");
    let arguments = [more, &["port-forward", session, &port]].concat();
    let mut running = Running::start(&mut atoll.command(&arguments));
    let line = running.line();
    let address = line.split(" -> ").next().unwrap().to_owned();
    (running, address)
}

/// Sends one request and reads the answer to its end.
fn ask(mut stream: impl Read + Write, path: &str, more: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn tcp(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The private server's socket.
fn private(atoll: &Atoll) -> UnixStream {
    let status = atoll.json(&["daemon", "status"]);
    let stream = UnixStream::connect(status["socket"].as_str().unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn forwarded() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let _server = files(&atoll, &session);
    let (mut forwarding, address) = forward(&atoll, &[], &session, 8000);

    for _ in 0..3 {
        let answer = ask(tcp(&address), "/", "");
        assert!(answer.ends_with("from inside\n"), "{answer}");
    }

    assert!(address.starts_with("127.0.0.1:"), "{address}");
    forwarding.signal(Signal::INT);
    let ended = forwarding.finish();
    assert_eq!(ended.code, 0, "{ended:?}");
}

fn ends_with_session() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let (forwarding, address) = forward(&atoll, &[], &session, 8000);

    atoll.ok(&["session", "rm", &session]);
    // It learns that when it is used.
    let answer = tcp(&address).read(&mut [0; 8]);

    assert!(!matches!(answer, Ok(1..)), "{answer:?}");
    let ended = forwarding.finish();
    assert_eq!(ended.code, 125, "{ended:?}");
    assert!(ended.stderr.contains("error: "), "{ended:?}");
}

fn taken() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("{}:8000", listener.local_addr().unwrap().port());

    let taken = atoll.run(&["port-forward", &session, &port]);
    let nobody = atoll.run(&["port-forward", "absent", "0:8000"]);
    let wrong = atoll.run(&["port-forward", &session, "0:0"]);

    assert_eq!(taken.code, 125, "{taken:?}");
    assert!(taken.stderr.contains("in use") && taken.stderr.contains("0:8000"), "{taken:?}");
    assert_eq!(nobody.code, 125, "{nobody:?}");
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

fn over_tls() {
    let atoll = Atoll::new();
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    std::fs::write(atoll.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(atoll.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let (server, url) = serve(&atoll, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let key = atoll.json(&["key", "create", "test"]);
    let far = Atoll::new()
        .with("ATOLL_API_KEY", key["key"].as_str().unwrap())
        .with("ATOLL_CA_FILE", atoll.path("cert.pem").to_str().unwrap());
    let session = atoll.session(&[]);
    let program = files(&atoll, &session);

    let (forwarding, address) = forward(&far, &["--server", &url], &session, 8000);
    let answer = ask(tcp(&address), "/", "");

    assert!(answer.ends_with("from inside\n"), "{answer}");
    drop((forwarding, program));
    atoll.ok(&["session", "rm", &session]);
    stop(server);
}

fn over_http() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let _server = files(&atoll, &session);
    let base = format!("/api/sessions/{session}/ports");

    let list = ask(private(&atoll), &base, "");
    let page = ask(private(&atoll), &format!("{base}/8000/"), "");
    let absent = ask(private(&atoll), &format!("{base}/8000/absent?x=1"), "");

    assert!(list.ends_with("{\"ports\":[8000]}"), "{list}");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("from inside"), "{page}");
    assert!(page.contains("content-security-policy: sandbox "), "{page}");
    assert!(absent.starts_with("HTTP/1.1 404 "), "{absent}");
    assert!(absent.contains("x-atoll-port: 8000\r\n"), "{absent}");
}

fn no_key() {
    let atoll = Atoll::new();
    let (server, url) = serve(&atoll, &[]);
    let key = atoll.json(&["key", "create", "test", "--scope", "run"]);
    let key = key["key"].as_str().unwrap();
    let session = atoll.session(&[]);
    let program = python(&atoll, &session, MIRROR);
    let address = url.strip_prefix("http://").unwrap();
    let path = format!("/api/sessions/{session}/ports/8000/a?b");

    let headers = format!("X-API-Key: {key}\r\nCookie: x={key}\r\nReferer: http://{key}/\r\n");
    let by_header = ask(tcp(address), &path, &headers);
    let bearer = format!("Authorization: Bearer {key}\r\nX-Forwarded-For: 192.0.2.1\r\n");
    let by_bearer = ask(tcp(address), &path, &bearer);
    let stranger = ask(tcp(address), &path, "");

    for answer in [by_header, by_bearer] {
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("GET /a?b HTTP/1.1\n"), "{answer}");
        assert!(answer.contains("x-forwarded-for: 127.0.0.1\n"), "{answer}");
        assert!(!answer.contains(key) && !answer.contains("192.0.2.1"), "{answer}");
        assert!(!answer.to_lowercase().contains("clear-site-data"), "{answer}");
        let cookie = format!("atoll-port-a=1; Path=/api/sessions/{session}/ports/8000/;");
        assert!(answer.contains(&cookie) && !answer.contains("Domain"), "{answer}");
    }
    assert!(stranger.starts_with("HTTP/1.1 401 "), "{stranger}");
    drop(program);
    atoll.ok(&["session", "rm", &session]);
    stop(server);
}

fn over_websocket() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let _server = python(&atoll, &session, include_str!("websocket.py"));
    let mut stream = private(&atoll);
    let request = format!(
        "GET /api/sessions/{session}/ports/8001/chat HTTP/1.1\r\nHost: localhost\r\n\
        Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();

    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // The answer to that key in the standard's own example.
    assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
    for word in ["hello", "again"] {
        stream.write_all(&[&[0x81, 0x85, 0, 0, 0, 0], word.as_bytes()].concat()).unwrap();
        let mut frame = [0; 7];
        stream.read_exact(&mut frame).unwrap();
        assert_eq!(frame, *[&[0x81, 5], word.as_bytes()].concat());
    }
}

fn closed() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let path = format!("/api/sessions/{session}/ports/8000/");

    let answer = ask(private(&atoll), &path, "");

    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("\"code\":\"port_closed\""), "{answer}");
    assert!(!answer.contains("x-atoll-port"), "{answer}");
}
