//! Several hosts, and hosts that behave badly.

use atoll_agent_protocol::{
    message::{Hello, OfProcess, Request, Response, VERSION, request::Call, response::Answer},
    mux::Mux,
};

use crate::support::{Agent, command, shell, within};

async fn greets(mux: &Mux) -> bool {
    let Ok(stream) = mux.open().await else { return false };
    let hello = Request { call: Some(Call::Hello(Hello { version: VERSION })) };
    if stream.send(&hello).await.is_err() {
        return false;
    }
    match within(stream.recv::<Response>()).await {
        Ok(Some(Response { answer: Some(Answer::Hello(Hello { version })) })) => version == VERSION,
        _ => false,
    }
}

#[tokio::test]
async fn eight_hosts_are_served_and_a_ninth_is_hung_up_on() {
    let agent = Agent::new().await;
    let mut hosts: Vec<Mux> = (0..7).map(|_| agent.connect()).collect();
    assert!(greets(&agent.mux).await);
    for host in &hosts {
        assert!(greets(host).await);
    }

    let ninth = agent.connect();
    assert!(!greets(&ninth).await);

    let last = hosts.pop().unwrap();
    last.close();
    within(async {
        while !greets(&agent.connect()).await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_host_that_speaks_nonsense_harms_nobody() {
    use tokio::io::AsyncWriteExt as _;

    let agent = Agent::new().await;
    for noise in [&[0xff; 4096][..], b"GET / HTTP/1.1\r\n\r\n", &[0; 16_000]] {
        let mut socket = tokio::net::UnixStream::connect(agent.socket()).await.unwrap();
        let _ = socket.write_all(noise).await;
    }
    let unknown = agent.mux.open().await.unwrap();
    unknown.send(&Request { call: None }).await.unwrap();
    let answer = within(unknown.recv::<Response>()).await.unwrap().unwrap().answer;

    assert!(matches!(answer, Some(Answer::Error(_))));
    assert_eq!(agent.shell("echo on").await.stdout, b"on\n");
}

#[tokio::test]
async fn a_reader_that_stops_holds_up_nobody() {
    let agent = Agent::new().await;
    let mut start = shell("seq 1 1000000; echo end >&2");
    start.output = 16 << 20;
    let process = agent.start(start).await.unwrap();
    let attach = atoll_agent_protocol::message::Attach { process, stdout: 0, stderr: 0 };
    let stalled = agent.open(Call::Attach(attach)).await;

    let finished = agent.finish(process).await;

    assert_eq!(finished.stdout.len(), 6_888_896);
    assert_eq!(finished.stderr, b"end\n");
    drop(stalled);
}

#[tokio::test]
async fn a_process_outlives_the_host_that_started_it() {
    let mut agent = Agent::new().await;
    let process = agent.start(command(&["/bin/sh", "-c", "read line; echo $line"])).await.unwrap();
    agent.finish(process).await;
    let mut start = shell("read line; echo $line");
    start.stdin = true;
    let process = agent.start(start).await.unwrap();

    agent.mux.close();
    agent.mux = agent.connect();
    let data = "from another host\n".into();
    let write = atoll_agent_protocol::message::WriteStdin { process, data };
    agent.ask(Call::WriteStdin(write)).await.unwrap();

    assert_eq!(agent.finish(process).await.stdout, b"from another host\n");
    agent.ask(Call::Kill(OfProcess { process })).await.unwrap();
}

#[tokio::test]
async fn output_of_the_oldest_makes_room_for_new() {
    let agent = Agent::new().await;
    let line = "head -c 41943040 /dev/zero";
    let mut processes = Vec::new();
    for _ in 0..3 {
        let mut start = shell(line);
        start.output = 64 << 20;
        let process = agent.start(start).await.unwrap();
        agent.wait(process).await;
        processes.push(process);
    }

    let [first, second, third] = processes[..] else { panic!("three") };
    let attach = atoll_agent_protocol::message::Attach { process: first, ..Default::default() };
    let failure = agent.ask(Call::Attach(attach)).await.unwrap_err();

    assert_eq!(failure.kind(), atoll_agent_protocol::message::FailureKind::NotFound);
    for process in [second, third] {
        assert_eq!(agent.finish(process).await.stdout.len(), 41_943_040);
    }
}
