//! K17: programs in a sandbox, reached through the server.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    canary::token,
    check::{Check, check, claim},
    ground::PATIENCE,
    served::Served,
    stage::Stage,
};

/// How long a control looks at an answer that will never come. Longer would show the same.
const STUCK: Duration = Duration::from_secs(4);

const NAIVE: &str = "a proxy that connects on the host and passes everything on";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("K17", "a_port_closed_inside_is_closed_whoever_listens_elsewhere", closed)
            .against(NAIVE),
        check("K17", "a_program_learns_no_credential_of_who_asks", credentials).against(NAIVE),
        check("K17", "programs_that_answer_badly_or_never_cost_an_error", bad_answers)
            .against(NAIVE),
    ]
}

/// A program of the host that says back what it is asked, or nothing.
struct Host {
    port: u16,
    _task: AbortOnDropHandle<()>,
}

impl Host {
    async fn new(answers: bool) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let task = tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut caller, _)) = listener.accept().await {
                if !answers {
                    kept.push(caller);
                    continue;
                }
                let mut head = vec![0; 64 << 10];
                let count = caller.read(&mut head).await.unwrap_or(0);
                // How it goes is for the caller to say.
                let _ = caller.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                let _ = caller.write_all(&head[..count]).await;
            }
        });
        Ok(Self { port, _task: AbortOnDropHandle::new(task) })
    }
}

async fn ask(served: &Served, port: u16, lines: &str) -> Result<String> {
    let answer = tokio::time::timeout(PATIENCE, served.ask_port(port, lines)).await;
    answer.unwrap_or_else(|_| claim(false, || "no answer".to_owned()).map(|()| String::new()))
}

fn refused(answer: &str, status: &str, code: &str) -> Result<()> {
    let right = answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(code);
    claim(right, || format!("not {status} {code}: {answer}"))
}

/// The host listens on a port, and so does the sandbox next door; this one does not.
async fn closed(stage: Arc<Stage>) -> Result<()> {
    let host = Host::new(true).await?;
    Served::during(&stage, async |served| {
        if stage.weak {
            return refused(&ask(served, host.port, "").await?, "502", "port_closed");
        }
        Served::during(&stage, async |next| {
            next.answering(host.port, "echo").await?;
            let there = ask(next, host.port, "").await?;
            anyhow::ensure!(there.starts_with("HTTP/1.1 200 "), "next door: {there}");
            refused(&ask(served, host.port, "").await?, "502", "port_closed")?;
            // Where an agent might be listening, if it did.
            for port in [22, 2375, 49983, 65535] {
                refused(&ask(served, port, "").await?, "502", "port_closed")?;
            }
            Ok(())
        })
        .await
    })
    .await
}

/// The program is told what it was asked, and by nobody in particular.
async fn credentials(stage: Arc<Stage>) -> Result<()> {
    let host = Host::new(true).await?;
    let secret = token()?;
    let lines = format!(
        "Authorization: Bearer {secret}\r\nX-API-Key: {secret}\r\nCookie: session={secret}\r\n\
         Proxy-Authorization: Basic {secret}\r\nX-Said: here\r\n"
    );
    Served::during(&stage, async |served| {
        if !stage.weak {
            served.answering(host.port, "echo").await?;
        }
        let answer = ask(served, host.port, &lines).await?;
        anyhow::ensure!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        claim(!answer.contains(&secret), || format!("the program was told: {answer}"))
    })
    .await
}

/// Garbage, a head without end, no answer, no word at all: each is an error that says so, and the
/// server goes on.
async fn bad_answers(stage: Arc<Stage>) -> Result<()> {
    let host = Host::new(false).await?;
    Served::during(&stage, async |served| {
        if stage.weak {
            let answer = tokio::time::timeout(STUCK, served.ask_port(host.port, "")).await;
            return claim(answer.is_ok(), || "it waits for ever".to_owned());
        }
        let ways = [
            ("garbage", "502", "bad_gateway"),
            ("huge", "502", "bad_gateway"),
            ("gone", "502", "bad_gateway"),
            ("silent", "504", "timed_out"),
        ];
        for (number, (way, status, code)) in (0_u16..).zip(ways) {
            let port = 9000 + number;
            served.answering(port, way).await?;
            for _ in 0..3 {
                refused(&ask(served, port, "").await?, status, code)?;
            }
        }
        let long = format!("X-Long: {}\r\n", "x".repeat(256 << 10));
        let answer = ask(served, 9000, &long).await;
        // It may hang up while it is still being told.
        let turned_away = answer.as_ref().map_or(true, |answer| answer.starts_with("HTTP/1.1 4"));
        claim(turned_away, || format!("a long head: {answer:?}"))?;
        served.answering(9100, "echo").await?;
        let answer = ask(served, 9100, "").await?;
        claim(answer.starts_with("HTTP/1.1 200 "), || format!("it does not go on: {answer}"))
    })
    .await
}
